"""What people see: dashboards, alert rules, provisioning, and the code that writes them."""
