"""GET /metrics: what the server has done and does, as Prometheus reads it, under llama-server's names and our own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import accumulate, starmap

from fastapi import Request as HttpRequest
from fastapi.responses import Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from app.server.calls.model_pool import ModelPool, pool_of
from app.server.calls.request_totals import TTFT_BOUNDS
from app.server.remotes.figures import RemoteFigures
from core.values.messages import Snapshot


async def metrics(http: HttpRequest) -> Response:
    """Return all metrics in Prometheus' text format."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Metrics(pool_of(http)))
    registry.register(_RemoteMetrics(http.app.state.remotes.figures))
    return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)


class _Metrics(Collector):
    def __init__(self, pool: ModelPool) -> None:
        self._pool = pool

    def collect(self) -> Iterator[Metric]:
        """Yield every metric with its present value."""
        hosts = self._pool.hosts
        totals = self._pool.totals
        n_active = sum(host.bridge.n_active for host in hosts)
        n_queued = sum(host.bridge.n_queued + host.n_waiting for host in hosts)
        snapshots = [host.bridge.snapshot or Snapshot() for host in hosts]
        n_evaluated = totals.n_prompt - totals.n_cached
        counters = (
            ("llamacpp:prompt_tokens", "Number of prompt tokens processed.", n_evaluated + totals.n_embedded),
            ("llamacpp:prompt_tokens_cached", "Number of prompt tokens found in the cache.", totals.n_cached),
            ("llamacpp:prompt_seconds", "Prompt process time in seconds.", totals.prompt_seconds),
            ("llamacpp:tokens_predicted", "Number of generation tokens processed.", totals.n_generated),
            ("llamacpp:tokens_predicted_seconds", "Predict process time in seconds.", totals.decode_seconds),
            ("llamacpp:spec_decode_num_draft_tokens", "Total draft tokens generated.", totals.n_drafted),
            ("llamacpp:spec_decode_num_accepted_tokens", "Total draft tokens accepted.", totals.n_accepted),
            ("llamacpp:spec_decode_num_drafts", "Total drafts verified.", totals.n_drafts),
            ("llamacpp:n_decode", "Number of steps of the engines for texts.", totals.n_steps),
        )
        yield from starmap(CounterMetricFamily, counters)
        prefill_rate = _rate(n_evaluated, totals.prompt_seconds)
        decode_rate = _rate(totals.n_generated, totals.decode_seconds)
        busy = totals.n_shares / totals.n_steps if totals.n_steps else 0.0
        decoding, reading = sum(one.decode_rate for one in snapshots), sum(one.bytes_per_second for one in snapshots)
        n_used, n_cells = sum(one.n_cells_used for one in snapshots), sum(one.n_cells for one in snapshots)
        gauges = (
            ("llamacpp:prompt_tokens_seconds", "Average prompt throughput in tokens/s.", prefill_rate),
            ("llamacpp:predicted_tokens_seconds", "Average generation throughput in tokens/s.", decode_rate),
            ("llamacpp:requests_processing", "Number of requests processing.", n_active),
            ("llamacpp:requests_deferred", "Number of requests deferred.", n_queued),
            ("llamacpp:n_tokens_max", "Tokens of the longest prompt with its reply.", totals.n_longest),
            ("llamacpp:n_busy_slots_per_decode", "Average number of requests in a step.", busy),
            (
                "slipstream:decode_tokens_per_second",
                "Generated tokens per second in the last second of work.",
                decoding,
            ),
            ("slipstream:memory_bytes_per_second", "Weights and KV cache read per second, computed.", reading),
            ("slipstream:kv_cells_used", "Cells of the KV cache in use.", n_used),
            ("slipstream:kv_cells", "Cells of the KV cache.", n_cells),
        )
        yield from starmap(GaugeMetricFamily, gauges)
        ended = [([reason], count) for reason, count in totals.n_ended.items()]
        yield _counter("slipstream:requests_ended", "Requests that have ended, by reason.", ["reason"], ended)
        bounds = [*map(str, TTFT_BOUNDS), "+Inf"]
        buckets = list(zip(bounds, map(float, accumulate(totals.ttft)), strict=True))
        yield HistogramMetricFamily(
            "slipstream:time_to_first_token_seconds",
            "From the request to its first token.",
            buckets=buckets,
            sum_value=totals.ttft_seconds,
        )


class _RemoteMetrics(Collector):
    """What remotes did for this server's clients, by the remote's name."""

    def __init__(self, figures: RemoteFigures) -> None:
        self._figures = figures

    def collect(self) -> Iterator[Metric]:
        """Yield every metric with its present value."""
        totals = self._figures.totals
        counters = (
            ("prompt_tokens", "Prompt tokens, as the remote counted them.", "n_prompt"),
            ("tokens_predicted", "Generated tokens, as the remote counted them.", "n_generated"),
            ("tokens_predicted_seconds", "Seconds between first and last tokens.", "decode_seconds"),
            ("first_token_seconds", "Seconds that requests waited for their first token.", "ttft_seconds"),
        )
        for name, text, field in counters:
            values = [([remote], getattr(one, field)) for remote, one in totals.items()]
            yield _counter(f"slipstream:remote_{name}", text, ["remote"], values)
        ended = [([remote, why], count) for remote, one in totals.items() for why, count in one.n_ended.items()]
        text = "Requests that have ended, by reason."
        yield _counter("slipstream:remote_requests_ended", text, ["remote", "reason"], ended)
        fallbacks = [([remote], count) for remote, count in self._figures.n_fallbacks.items()]
        text = "Requests that a model of this machine answered."
        yield _counter("slipstream:remote_fallbacks", text, ["remote"], fallbacks)
        running = GaugeMetricFamily("slipstream:remote_requests_processing", "Requests there now.", labels=["remote"])
        counts = Counter(request.to.remote.name for request in self._figures.live.values())
        for remote, count in sorted(counts.items()):
            running.add_metric([remote], count)
        yield running


def _counter(name: str, text: str, labels: list[str], values: Iterable[tuple[list[str], float]]) -> Metric:
    found = CounterMetricFamily(name, text, labels=labels)
    for named, value in sorted(values):
        found.add_metric(named, value)
    return found


def _rate(n_tokens: int, seconds: float) -> float:
    return n_tokens / seconds if seconds > 0 else 0.0
