"""A topic of Kafka. It needs confluent-kafka: `pip install 'streamgp[kafka]'`.

Offsets are not committed to Kafka. Whoever reads keeps them, together with what was made of the
messages, and so handles each message once.
"""

from collections.abc import Mapping
from typing import Any

from streamgp.errors import DataError, SourceError, problem
from streamgp.sources.feed import AbstractFeed, Messages

try:
    import confluent_kafka
except ImportError as error:
    raise ImportError(
        problem("confluent-kafka", f"{error}", "Run `pip install 'streamgp[kafka]'`.")
    ) from error

_WAIT = 0.2  # seconds for messages
_PATIENCE = 30.0  # seconds for the brokers to tell of a topic


class KafkaFeed(AbstractFeed):
    """All partitions of a topic, whose messages are objects in JSON.

    Args:
        brokers: Addresses, such as "kafka:9092", separated by commas.
        topic: The topic.
        place: What `Messages.place` was; None for the beginning.
        settings: Further settings of librdkafka, such as those of TLS and SASL.

    Raises:
        DataError: If there is no such topic.
        SourceError: If no broker answers.
    """

    def __init__(
        self, brokers: str, topic: str, place: Any = None, settings: Mapping[str, Any] | None = None
    ):
        self._topic = topic
        self._consumer = confluent_kafka.Consumer(
            {
                "group.id": "streamgp",  # it is asked for, and not used
                **(settings or {}),
                "bootstrap.servers": brokers,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
            }
        )
        self._offsets: dict[str, int] = dict(place or {})
        self._consumer.assign([self._begin(number) for number in self._partitions()])

    def _partitions(self) -> list[int]:
        try:
            found = self._consumer.list_topics(self._topic, timeout=_PATIENCE).topics[self._topic]
        except confluent_kafka.KafkaException as error:
            raise SourceError(
                problem("a broker of Kafka that answers", f"{error}", "Check it and its address.")
            ) from error
        if found.error is not None:
            raise DataError(
                problem(f"a topic {self._topic!r}", f"{found.error}", "Create it first.")
            )
        return sorted(found.partitions)

    def _begin(self, partition: int) -> Any:
        earliest = confluent_kafka.OFFSET_BEGINNING
        offset = self._offsets.get(str(partition), earliest)
        return confluent_kafka.TopicPartition(self._topic, partition, offset)

    def read(self, most: int) -> Messages:
        """The messages that have come, of all partitions. It waits for a moment if none have."""
        each: list[bytes] = []
        numbers: list[str] = []
        for message in self._consumer.consume(most, _WAIT):
            offset, value = message.offset(), message.value()
            if message.error() is None and offset is not None:
                self._offsets[str(message.partition())] = offset + 1
                if value is not None:
                    each.append(value)
                    numbers.append(f"{offset} of partition {message.partition()}")
        return Messages(each, b"", dict(self._offsets), numbers)

    def close(self) -> None:
        """Leave the brokers."""
        self._consumer.close()
