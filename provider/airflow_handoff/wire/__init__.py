"""The wire between a supervisor and a language runtime, Sans-I/O: bytes in, values out."""
