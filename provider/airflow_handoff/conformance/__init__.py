"""The kit that proves each line of a capabilities manifest."""
