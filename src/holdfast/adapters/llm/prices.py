"""What a call costs, in US dollars: by the user's own figures, else by the table in `genai-prices`,
else unknown."""

from __future__ import annotations

from typing import Any

from holdfast.adapters.llm.address import ModelAddress
from holdfast.adapters.llm.protocol import Reply

MILLION = 1_000_000


class Prices:
    """The prices of one model. None means that nobody knows: never that it is free."""

    def __init__(self, address: ModelAddress) -> None:
        self._address = address
        self._unlisted = False

    @property
    def known(self) -> bool:
        return self.of(1, 1) is not None

    def of(
        self, input_tokens: int, output_tokens: int, cached: int = 0, written: int = 0
    ) -> float | None:
        """`cached` and `written` of the input tokens were read from and written to the vendor's
        cache."""
        address = self._address
        if address.input_price is not None and address.output_price is not None:
            return (
                input_tokens * address.input_price + output_tokens * address.output_price
            ) / MILLION
        return (
            None if self._unlisted else self._listed(input_tokens, output_tokens, cached, written)
        )

    def of_reply(self, reply: Reply, input_tokens: int, output_tokens: int) -> float | None:
        return self.of(
            input_tokens,
            output_tokens,
            min(reply.cached_tokens, input_tokens),
            min(reply.written_tokens, max(0, input_tokens - reply.cached_tokens)),
        )

    def _listed(
        self, input_tokens: int, output_tokens: int, cached: int, written: int
    ) -> float | None:
        from genai_prices import (
            Usage,
            calc_price,
        )  # takes a quarter of a second: only for those who really call

        usage = Usage(
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            cache_read_tokens=cached,
            cache_write_tokens=written,
        )
        try:
            return float(calc_price(usage, self._address.model, **self._provider()).total_price)
        except (LookupError, ValueError):
            self._unlisted = True
            return None

    def _provider(self) -> dict[str, Any]:
        """The vendor, or whoever is known to serve at that URL: the same model has another price
        elsewhere."""
        if self._address.is_vendors_own:
            return {"provider_id": self._address.vendor}
        return {"provider_api_url": self._address.base_url}
