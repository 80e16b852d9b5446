"""Reserved for TaskFlow decorators over the operators; empty today."""
