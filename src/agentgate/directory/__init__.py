"""Who is there: registration, capability lookup, presence, the versioned route snapshot."""

from agentgate.directory.cards import CardOptions
from agentgate.directory.directory import Directory, DirectoryOptions
from agentgate.directory.listing import AgentInfo, InstanceInfo

__all__ = ["AgentInfo", "CardOptions", "Directory", "DirectoryOptions", "InstanceInfo"]
