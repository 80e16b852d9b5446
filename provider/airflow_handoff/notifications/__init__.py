"""Reserved for notifiers that carry a question to people; empty today."""
