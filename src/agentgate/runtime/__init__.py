"""Building blocks of asyncio that know nothing of calls: services, batches, runners."""
