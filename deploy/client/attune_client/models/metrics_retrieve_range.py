from typing import Literal

MetricsRetrieveRange = Literal["1d", "30d", "7d"]

METRICS_RETRIEVE_RANGE_VALUES: set[MetricsRetrieveRange] = {
    "1d",
    "30d",
    "7d",
}


def check_metrics_retrieve_range(value: str) -> MetricsRetrieveRange:
    if value in METRICS_RETRIEVE_RANGE_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {METRICS_RETRIEVE_RANGE_VALUES!r}")
