"""TaskFlow decorators over the operators."""
