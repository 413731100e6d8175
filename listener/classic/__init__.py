"""Classic Spark, through Py4J: the bridge, the driver, the application, its files."""
