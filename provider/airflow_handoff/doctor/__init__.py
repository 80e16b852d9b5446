"""Reserved for checks of a deployment's configuration; empty today."""
