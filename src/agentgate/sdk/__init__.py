"""The light client: Agent, Context, Gate, and the link they speak over. It holds no policy; the gate does."""
