"""Forecasts of time series: rolling origins, methods that are updated as the stream goes."""
