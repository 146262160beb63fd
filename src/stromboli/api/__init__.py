"""The data of the system: models, names, quantities and their arithmetic. Pure: no I/O and no clock."""
