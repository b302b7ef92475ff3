"""Settings: assembled from the options that sit beside each part; read once, handed down."""

from agentgate.config.contradictions import Contradiction, contradictions
from agentgate.config.describe import Row, rows
from agentgate.config.key import Key
from agentgate.config.keys import KEYS
from agentgate.config.loader import Examined, Loaded, examine, load
from agentgate.config.mechanisms import MECHANISMS
from agentgate.config.schema import schema
from agentgate.config.settings import Settings, StoreOptions
from agentgate.config.source import Given

__all__ = [
    "KEYS",
    "MECHANISMS",
    "Contradiction",
    "Examined",
    "Given",
    "Key",
    "Loaded",
    "Row",
    "Settings",
    "StoreOptions",
    "contradictions",
    "examine",
    "load",
    "rows",
    "schema",
]
