"""What a language SDK claims it can do, checked and rendered."""
