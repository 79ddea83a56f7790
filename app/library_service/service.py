"""Takes requests and sends what answers them: each in a thread of its own, so that none waits for the network."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from app.environment.exit_codes import ExitCode
from app.library.hub_access import LibraryError
from app.library.moving import ModelsMove
from app.library_service.downloads import DownloadService
from app.library_service.drafts import DraftService
from app.library_service.hub import HubService
from app.library_service.machine import MachineService
from app.library_service.measuring import MeasuringService
from app.library_service.models import ModelService
from app.library_service.outbox import Outbox
from app.library_service.pairs import PairService
from app.library_service.quantising import QuantiseService
from app.library_service.row_reports import RowReporter
from app.library_service.settings import SettingsService
from app.library_service.trouble import trouble_of
from models.download.progress import DownloadPhase
from models.library import requests as ask
from models.library.values import ModelRows, MoveStep

N_THREADS = 8
_AT_REST = (DownloadPhase.PAUSED, DownloadPhase.FAILED, DownloadPhase.CANCELLED, DownloadPhase.DONE)


class LibraryService:
    """Answers requests to ``outbox``, and sends it the news."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        machine = MachineService()
        self._machine, self._shelf, self._hub = machine, ModelService(), HubService(machine)
        self._judge = RowReporter(machine, tell=lambda rows: outbox.tell("judged", rows))
        self._pairs = PairService(self._shelf, machine, changed=self._judge.forget)
        self._downloads = DownloadService(
            tell=lambda downloads: outbox.tell("downloads", downloads), arrived=self._tell_of_models
        )
        self._quantiser = QuantiseService(
            self._shelf,
            tell=lambda quantisings: outbox.tell("quantisings", quantisings),
            arrived=self._tell_of_models,
        )
        self._measuring = MeasuringService(self._shelf)
        self._move: ModelsMove | None = None
        self._threads = ThreadPoolExecutor(N_THREADS, "library")
        self._handlers = self._made_handlers()

    def start(self) -> None:
        """Go on with the downloads of the last time, and tidy up after what was killed then."""
        self._downloads.start()
        self._quantiser.start()

    def stop(self) -> None:
        """Take no more. Of a smaller copy that is being made nothing is left."""
        self._cancel_move()
        self._downloads.stop()
        self._quantiser.stop()
        self._measuring.stop()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def take(self, number: int, request: Any) -> None:
        """Answer a request, one of ``models.library.requests``."""
        self._threads.submit(self._answer, number, request)

    def _answer(self, number: int, request: Any) -> None:
        try:
            answer = self._handlers[type(request)](request)
            if isinstance(answer, Iterator):
                for part in answer:
                    self._outbox.answer(number, part, has_more=True)
                answer = None
            self._outbox.answer(number, answer)
        except Exception as error:
            # Whatever it was, the one who asked gets a sentence: a thread's traceback helps nobody.
            self._outbox.refuse(number, trouble_of(error))

    def _made_handlers(self) -> dict[type, Callable[[Any], Any]]:
        shelf, hub, downloads, pairs = self._shelf, self._hub, self._downloads, self._pairs
        settings, quantiser, drafts = SettingsService(shelf), self._quantiser, DraftService(shelf, hub)
        return {
            ask.ListModels: lambda request: self._list_models(),
            ask.ShowModel: lambda request: shelf.row(request.name, self._judge.of),
            ask.GetSettings: lambda request: settings.sheet(request.name),
            ask.ChangeSettings: lambda request: settings.change(request.name, request.changes),
            ask.OfferQuantise: lambda request: quantiser.offer(request.name),
            ask.Quantise: quantiser.begin,
            ask.CancelQuantise: lambda request: quantiser.cancel(request.number),
            ask.GetModelFit: lambda request: pairs.judge(request.name),
            ask.ShowPartners: lambda request: pairs.partners(request.name),
            ask.FindOffers: lambda request: pairs.offers(request.name),
            ask.FindDraft: lambda request: drafts.find(request.repo_id, request.wanted),
            ask.ChoosePartner: lambda request: pairs.choose(request.name, request.way, request.partner),
            ask.TestPair: lambda request: pairs.test(request.name, request.partner),
            ask.BeginPairTest: lambda request: pairs.begin_test(),
            ask.StopPairTest: lambda request: pairs.stop_test(),
            ask.Verify: self._measuring.verify,
            ask.ListBenches: lambda request: self._measuring.benches,
            ask.RunBench: lambda request: self._measuring.bench(request.name),
            ask.StopMeasuring: lambda request: self._stop_measuring(),
            ask.ShowMachine: lambda request: self._machine.facts(),
            ask.MeasureMachine: self._changing_models(lambda request: self._measure(is_first=request.is_first)),
            ask.DismissNotice: self._changing_models(lambda request: shelf.dismiss(request.path)),
            ask.MoveModels: self._move_models,
            ask.CancelMove: lambda request: self._cancel_move(),
            ask.ListPlaces: lambda request: shelf.places(),
            ask.RemoveModel: self._changing_models(lambda request: shelf.remove(request.name)),
            ask.ImportFolder: self._changing_models(lambda request: shelf.import_folder(request.folder)),
            ask.ImportFile: self._import_file,
            ask.ForgetFolder: self._changing_models(lambda request: shelf.forget(request.folder)),
            ask.ListCurated: lambda request: hub.suggested(),
            ask.SearchHub: lambda request: hub.search(request.words, request.order),
            ask.ShowRepository: lambda request: hub.repository(request.repo_id),
            ask.GetRemoteFit: lambda request: hub.judge(request.repo_id, request.wanted),
            ask.Recommend: lambda request: hub.recommend(request.repo_id),
            ask.ShowHub: lambda request: hub.facts(),
            ask.ChangeHub: self._changing_hub(lambda request: hub.change(request.address, request.proxy)),
            ask.LogIn: self._changing_hub(lambda request: hub.log_in(request.token)),
            ask.LogOut: self._changing_hub(lambda request: hub.log_out()),
            ask.ListDownloads: lambda request: downloads.downloads,
            ask.ListQuantisings: lambda request: quantiser.quantisings,
            ask.StartDownload: lambda request: downloads.pull(request.repo_id, request.wanted),
            ask.RepairModel: lambda request: downloads.add(shelf.repair_request(request.name)),
            ask.PauseDownload: lambda request: downloads.pause(request.number),
            ask.ResumeDownload: lambda request: downloads.resume(request.number),
            ask.CancelDownload: lambda request: downloads.cancel(request.number),
            ask.MoveDownload: lambda request: downloads.move(request.number, request.position),
            ask.ClearEnded: lambda request: downloads.clear_ended(),
        }

    def _move_models(self, request: ask.MoveModels) -> Iterator[MoveStep]:
        if self._move is not None:
            raise LibraryError("The models are being moved already.", ExitCode.USAGE)
        downloads = [one for one in self._downloads.downloads if one.phase not in _AT_REST]
        if downloads or any(not one.is_over for one in self._quantiser.quantisings):
            raise LibraryError(
                "A model is being downloaded or made smaller: wait until that has ended, or pause it.", ExitCode.USAGE
            )
        self._move = ModelsMove(Path(request.folder))
        try:
            yield from self._move.run()
        finally:
            self._move = None
        self._tell_of_models()

    def _cancel_move(self) -> None:
        if self._move is not None:
            self._move.cancel()

    def _import_file(self, request: ask.ImportFile) -> str:
        name = self._shelf.import_file(request.file)
        self._tell_of_models()
        return name

    def _changing_models(self, act: Callable[[Any], None]) -> Callable[[Any], None]:
        def changed(request: Any) -> None:
            act(request)
            self._tell_of_models()

        return changed

    def _list_models(self) -> Iterator[ModelRows]:
        # Whoever looks at the files may find that one is gone that was downloaded.
        self._downloads.look()
        return self._shelf.rows(self._judge.of, self._judge.look)

    def _measure(self, *, is_first: bool) -> None:
        self._machine.measure(is_first=is_first, measured=self._on_measured)
        self._judge.forget()

    def _stop_measuring(self) -> None:
        self._machine.stop()
        self._measuring.stop()

    def _on_measured(self) -> None:
        self._judge.forget()
        self._tell_of_models()

    def _changing_hub(self, act: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def changed(request: Any) -> Any:
            facts = act(request)
            self._downloads.use_settings()
            return facts

        return changed

    def _tell_of_models(self) -> None:
        self._outbox.tell("models")
        self._downloads.look()
