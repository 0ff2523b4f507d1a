"""What a tenant is told without asking: alerts, by mail and by signed webhook."""
