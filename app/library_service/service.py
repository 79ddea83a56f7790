"""Answers what is asked of the library, in the library's process as in a command of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar
from weakref import WeakKeyDictionary

from app.environment.exit_codes import ExitCode
from app.library.errors import LibraryError
from app.library_service.outbox import Stop
from models.formatting.sentence import Sentence
from models.library import requests as ask

if TYPE_CHECKING:
    from app.library_service.downloads import DownloadService
    from app.library_service.hub import HubService
    from app.library_service.machine import MachineService
    from app.library_service.measuring import MeasuringService
    from app.library_service.models import ModelService
    from app.library_service.pairs import DraftService, PairService
    from app.library_service.quantising import QuantiseService
    from app.library_service.row_reports import RowReporter
    from app.library_service.settings import SettingsService
    from models.library.values import Download, ModelFitReport, ModelRows, MoveStep

_Made = TypeVar("_Made")
# The requests that each request to stop ends.
_STOPS: Final = {
    ask.StopPairTest: (ask.TestPair,),
    ask.StopMeasuring: (ask.MeasureMachine, ask.Verify, ask.RunBench),
    ask.CancelMove: (ask.MoveModels,),
}
# Those that write into the folder of models, which fails a move.
_WRITE: Final = frozenset(
    [
        ask.Quantise,
        ask.DismissNotice,
        ask.RemoveModel,
        ask.ImportFile,
        ask.StartDownload,
        ask.RepairModel,
        ask.PauseDownload,
        ask.ResumeDownload,
        ask.CancelDownload,
        ask.MoveDownload,
    ]
)


class _Part(Generic[_Made]):
    """A part of the service, imported and made when it is first needed, once for all threads."""

    def __init__(self, make: Callable[[Any], _Made]) -> None:
        self._make = make
        self._name = make.__name__

    def __get__(self, service: LibraryService, owner: type) -> _Made:
        with service.making:
            if self._name not in service.__dict__:  # another thread may have made it meanwhile
                service.__dict__[self._name] = self._make(service)
        made: _Made = service.__dict__[self._name]
        return made


class LibraryService:
    """Answers requests, and gives ``tell`` the news. May be asked from any thread."""

    def __init__(self, tell: Callable[[str, Any], None] = lambda news, value: None) -> None:
        self._tell = tell
        self.making = threading.RLock()
        self._is_started = False
        self._writing = threading.Lock()
        self._handlers = self._made_handlers()
        self._stoppable: dict[type, Callable[[Any, Stop], Any]] = {
            ask.TestPair: lambda request, stop: self._pairs.test(wish=request, stop=stop),
            ask.Verify: lambda request, stop: self._measuring.verify(request=request, stop=stop),
            ask.RunBench: lambda request, stop: self._measuring.bench(request.name, stop),
            ask.MeasureMachine: lambda request, stop: self._measure(stop, is_first=request.is_first),
            ask.MoveModels: self._move_models,
        }
        # The kinds of the requests that are not answered yet, by the signals that stop them.
        self._going: WeakKeyDictionary[Stop, type] = WeakKeyDictionary()

    def start(self) -> None:
        """Go on with the downloads of the last time, and tidy up after what was killed then.

        A service that is not started answers all the same; of what goes on elsewhere it knows nothing.
        """
        self._is_started = True
        self._downloads.start()
        self._quantiser.start()

    def stop(self) -> None:
        """End what is going on. Of a smaller copy that is being made nothing is left."""
        self._downloads.stop()
        self._quantiser.stop()
        for stop in tuple(self._going):
            stop.set()

    def answer(self, request: Any) -> Any:
        """Return the answer to one of ``models.library.requests``; an iterator of its parts where it has some.

        Raises what the library raises: SlipstreamError, the errors of models/, and OSError.
        """
        return self.take(request)()

    def take(self, request: Any, stop: Stop | None = None) -> Callable[[], Any]:
        """Take a request in its order, at once; return what answers it on any thread, like ``answer``.

        A request to stop ends what was taken before it, whether or not its thread has begun with it; so does ``stop``.
        """
        kind = type(request)
        if kind in _STOPS:
            stops = [stop for stop, of in self._going.items() if of in _STOPS[kind]]
            return lambda: _set(stops)
        if kind in self._stoppable:
            stop = stop or Stop()
            self._going[stop] = kind
            return partial(self._stoppable[kind], request, stop)
        act = partial(self._handlers[kind], request)
        return partial(self._beside_no_move, act) if kind in _WRITE else act

    @_Part
    def _machine(self) -> MachineService:
        from app.library_service.machine import MachineService

        machine = MachineService(measured=self._on_measured)
        if self._is_started:
            machine.complete()
        return machine

    @_Part
    def _shelf(self) -> ModelService:
        from app.library_service.models import ModelService

        return ModelService()

    @_Part
    def _hub(self) -> HubService:
        from app.library_service.hub import HubService

        return HubService(self._machine)

    @_Part
    def _judge(self) -> RowReporter:
        from app.library_service.row_reports import RowReporter

        return RowReporter(self._machine, tell=lambda rows: self._tell("judged", rows))

    @_Part
    def _pairs(self) -> PairService:
        from app.library_service.pairs import PairService

        return PairService(self._shelf, self._machine, changed=self._judge.forget)

    @_Part
    def _drafts(self) -> DraftService:
        from app.library_service.pairs import DraftService

        return DraftService(self._shelf, self._hub)

    @_Part
    def _settings(self) -> SettingsService:
        from app.library_service.settings import SettingsService

        return SettingsService(self._shelf, self._machine)

    @_Part
    def _downloads(self) -> DownloadService:
        from app.library_service.downloads import DownloadService

        return DownloadService(tell=lambda downloads: self._tell("downloads", downloads), arrived=self._tell_of_models)

    @_Part
    def _quantiser(self) -> QuantiseService:
        from app.library_service.quantising import QuantiseService

        return QuantiseService(
            self._shelf, tell=lambda quantisings: self._tell("quantisings", quantisings), arrived=self._tell_of_models
        )

    @_Part
    def _measuring(self) -> MeasuringService:
        from app.library_service.measuring import MeasuringService

        return MeasuringService(self._shelf)

    def _made_handlers(self) -> dict[type, Callable[[Any], Any]]:
        return {
            ask.ListModels: lambda request: self._list_models(),
            ask.ShowModel: lambda request: self._shelf.row(request.name, self._judge.of),
            ask.GetSettings: lambda request: self._settings.sheet(request.name),
            ask.ChangeSettings: lambda request: self._settings.change(request.name, request.changes),
            ask.OfferQuantise: lambda request: self._quantiser.offer(request.name),
            ask.Quantise: lambda request: self._quantiser.begin(wish=request),
            ask.CancelQuantise: lambda request: self._quantiser.cancel(request.number),
            ask.GetModelFit: lambda request: self._judge_one(request.name),
            ask.ShowPartners: lambda request: self._pairs.partners(request.name),
            ask.FindOffers: lambda request: self._pairs.offers(request.name),
            ask.FindDraft: lambda request: self._drafts.find(request.repo_id, request.wanted),
            ask.ChoosePartner: lambda request: self._pairs.choose(request.name, request.way, request.partner),
            ask.BeginPairTest: lambda request: self._pairs.begin_test(),
            ask.ListBenches: lambda request: self._measuring.benches,
            ask.ShowMachine: lambda request: self._machine.facts(),
            ask.DismissNotice: self._changing_models(lambda request: self._shelf.dismiss(request.path)),
            ask.ListPlaces: lambda request: self._shelf.places(),
            ask.RemoveModel: self._changing_models(self._remove),
            ask.ImportFolder: self._changing_models(lambda request: self._shelf.import_folder(request.folder)),
            ask.ImportFile: self._changing_models(lambda request: self._shelf.import_file(request.file)),
            ask.ForgetFolder: self._changing_models(lambda request: self._shelf.forget(request.folder)),
            ask.ListCurated: lambda request: self._hub.suggested(),
            ask.SearchHub: lambda request: self._hub.search(request.words, request.order),
            ask.ShowRepository: lambda request: self._hub.repository(request.repo_id),
            ask.GetRemoteFit: lambda request: self._hub.judge(request.repo_id, request.wanted),
            ask.Recommend: lambda request: self._hub.recommend(request.repo_id),
            ask.ShowHub: lambda request: self._hub.facts(),
            ask.ChangeHub: self._changing_hub(lambda request: self._hub.change(request.address, request.proxy)),
            ask.LogIn: self._changing_hub(lambda request: self._hub.log_in(request.token)),
            ask.LogOut: self._changing_hub(lambda request: self._hub.log_out()),
            ask.ListDownloads: lambda request: self._downloads.downloads,
            ask.ListQuantisings: lambda request: self._quantiser.quantisings,
            ask.StartDownload: self._start_download,
            ask.RepairModel: lambda request: self._downloads.add(self._shelf.repair_request(request.name)),
            ask.PauseDownload: lambda request: self._downloads.pause(request.number),
            ask.ResumeDownload: lambda request: self._downloads.resume(request.number),
            ask.CancelDownload: lambda request: self._downloads.cancel(request.number),
            ask.MoveDownload: lambda request: self._downloads.move(request.number, request.position),
            ask.ClearEnded: lambda request: self._downloads.clear_ended(),
        }

    def _move_models(self, request: ask.MoveModels, stop: Stop) -> Iterator[MoveStep]:
        from app.library.moving import ModelsMove, no_other_move

        with ExitStack() as held:
            with self._writing:
                held.enter_context(no_other_move())
            if self._downloads.is_busy or any(not one.is_over for one in self._quantiser.quantisings):
                raise LibraryError(
                    Sentence("A model is being downloaded or made smaller: wait until that has ended, or pause it."),
                    ExitCode.USAGE,
                )
            move = ModelsMove(Path(request.folder))
            stop.calls(move.cancel)
            yield from move.run()
        self._tell_of_models()

    def _beside_no_move(self, act: Callable[[], Any]) -> Any:
        """Do what writes into the folder of models; raises LibraryError while that is moved."""
        from app.library.moving import no_other_move

        with self._writing, no_other_move():
            return act()

    def _changing_models(self, act: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def changed(request: Any) -> Any:
            answer = act(request)
            self._tell_of_models()
            return answer

        return changed

    def _list_models(self) -> Iterator[ModelRows]:
        # A downloaded file may be gone.
        self._look_at_downloads()
        return self._shelf.rows(self._judge.of, self._judge.look)

    def _judge_one(self, name: str) -> ModelFitReport:
        found = self._pairs.judge(name)
        self._judge.take(found)
        return found

    def _measure(self, stop: Stop, *, is_first: bool) -> None:
        self._machine.measure(stop, is_first=is_first)
        self._on_measured()

    def _on_measured(self) -> None:
        self._judge.forget()
        self._tell_of_models()

    def _changing_hub(self, act: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def changed(request: Any) -> Any:
            facts = act(request)
            if self._is_started:
                self._downloads.use_settings()
            return facts

        return changed

    def _tell_of_models(self) -> None:
        self._tell("models", None)
        self._look_at_downloads()

    def _remove(self, request: ask.RemoveModel) -> tuple[str, ...]:
        return self._shelf.remove(request.name, for_good=request.for_good)

    def _start_download(self, request: ask.StartDownload) -> Download:
        from models.download.model_download import DownloadRequest

        return self._downloads.add(DownloadRequest(request.repo_id, request.wanted, request.revision))

    def _look_at_downloads(self) -> None:
        if self._is_started:
            self._downloads.look()


def _set(stops: Iterable[Stop]) -> None:
    for stop in stops:
        stop.set()
