"""What runs inside the api-server; nothing else imports it."""
