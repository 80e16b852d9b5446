"""Reserved for the kit that is to prove each line of a capabilities manifest; empty today."""
