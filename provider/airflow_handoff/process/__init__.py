"""The only code that spawns a process or opens its sockets; it knows no Airflow and no wire.

A :class:`~airflow_handoff.process.host.Host` runs one runtime under a guard process and hands its bytes to a
receiver; what the bytes mean is decided elsewhere.
"""

from airflow_handoff.process.environment import Environment, allowed_environment
from airflow_handoff.process.host import Host, Phase, Receiver

__all__ = ["Environment", "Host", "Phase", "Receiver", "allowed_environment"]
