"""The page and the JSON API: what each address gives. Everything that a request must pass first is in `guard.py`."""

from __future__ import annotations

from collections.abc import Callable
from importlib.resources import files
from typing import Annotated, Any, TypeVar

from fastapi import FastAPI, File, HTTPException, Query, Request, Response, UploadFile
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException as AnyHTTPException

from tusk import __version__
from tusk.errors import DataError, UserError
from tusk.naming.edits import Added, Hide, Merge, Recolour, Rename
from tusk.serve.download import KINDS, download
from tusk.serve.found import mask_for_page
from tusk.serve.guard import COOKIE, Rules
from tusk.serve.jobs import RETRY_AFTER, BusyError, Jobs
from tusk.serve.pictures import ShownPicture, clean_name
from tusk.serve.workbench import Filter, Workbench

Result = TypeVar("Result")

_SCRIPTS = ("api", "correct", "docs", "page", "pictures", "state", "types", "viewer")
_STATIC = {
    "style.css": "text/css; charset=utf-8",
    **{f"{name}.js": "text/javascript; charset=utf-8" for name in _SCRIPTS},
}
_MASK = 1024  # pixels of a mask on the page
Number = Annotated[int, Field(ge=0, lt=1 << 31)]


class Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Point(Body):
    picture: Number
    instance: Number


class TeachBody(Body):
    """These points are of this type (by its number), or of a new type of this name."""

    points: Annotated[list[Point], Field(min_length=1, max_length=1000)]
    type: Number | None = None
    name: Annotated[str, Field(max_length=60)] = ""


class SplitBody(Body):
    type: Number


class CorrectBody(Body):
    """Points of a picture that are none, by their instances, and places where one is missing."""

    picture: Number
    removed: Annotated[list[Number], Field(max_length=10_000)] = []
    added: Annotated[list[Added], Field(max_length=10_000)] = []


def make_app(bench: Workbench, jobs: Jobs, drawing: Jobs, rules: Rules) -> FastAPI:
    """jobs: for what runs the network; drawing: for pictures, crops and tables."""
    app = FastAPI(
        title="tusk", version=__version__, docs_url=None, redoc_url=None, openapi_url="/openapi.json",
        description="Typed keypoints of recurring things. Every answer that is no success has one field, `error`.",
    )  # fmt: skip
    _faults(app)
    _pages(app, rules)
    _programs(app, bench, jobs)
    _names(app, bench)
    _session(app, bench, jobs, drawing, rules)
    return app


def _faults(app: FastAPI) -> None:
    """Every fault as one sentence."""

    @app.exception_handler(UserError)
    async def user_error(_: Request, error: UserError) -> JSONResponse:
        return JSONResponse({"error": str(error)}, 415 if isinstance(error, DataError) else 422)

    @app.exception_handler(BusyError)
    async def busy(_: Request, __: BusyError) -> JSONResponse:
        words = {"error": "all places are taken; come again"}
        return JSONResponse(words, 503, headers={"retry-after": str(RETRY_AFTER)})

    @app.exception_handler(AnyHTTPException)
    async def http_error(_: Request, error: AnyHTTPException) -> JSONResponse:
        return JSONResponse({"error": str(error.detail)}, error.status_code)

    @app.exception_handler(404)
    async def not_found(_: Request, __: Exception) -> JSONResponse:
        return JSONResponse({"error": "there is no such address"}, 404)

    @app.exception_handler(405)
    async def no_method(_: Request, __: Exception) -> JSONResponse:
        return JSONResponse({"error": "there is no such method here"}, 405)

    @app.exception_handler(RequestValidationError)
    async def not_understood(_: Request, error: RequestValidationError) -> JSONResponse:
        faults = [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()[:3]]
        return JSONResponse({"error": "; ".join(faults)}, 422)


def _pages(app: FastAPI, rules: Rules) -> None:
    folder = files("tusk.serve") / "static"

    def page(name: str) -> Response:
        answer = Response((folder / name).read_bytes(), media_type="text/html; charset=utf-8")
        answer.headers["cache-control"] = "no-store"
        return answer

    @app.get("/", include_in_schema=False)
    def home(token: str | None = None) -> Response:
        answer = page("index.html")
        if rules.token is not None and token is not None:  # the guard has let it in
            answer.set_cookie(COOKIE, rules.token, httponly=True, samesite="strict")
        return answer

    @app.get("/docs", include_in_schema=False)
    def docs() -> Response:
        return page("docs.html")

    @app.get("/static/{name}", include_in_schema=False)
    def static(name: str) -> Response:
        if name not in _STATIC:
            raise HTTPException(404, "there is no such address")
        answer = Response((folder / name).read_bytes(), media_type=_STATIC[name])
        answer.headers["cache-control"] = "no-cache"
        return answer

    @app.get("/favicon.ico", include_in_schema=False)
    def icon() -> Response:
        return Response(status_code=204)


def _programs(app: FastAPI, bench: Workbench, jobs: Jobs) -> None:
    """What other programs call."""

    @app.get("/api/health", summary="Whether it is well, and how much work waits")
    async def health() -> dict[str, Any]:
        return {"status": "ok", "version": __version__, "model": bench.name, "jobs": jobs.taken, "most_jobs": jobs.most}

    @app.post("/api/detect", summary="A picture in, its points out; nothing is kept")
    async def detect(
        picture: Annotated[UploadFile, File(description="PNG, JPEG, WebP, BMP, TIFF or GIF")],
        keypoints: Annotated[int | None, Query(ge=1, le=4096)] = None,
        min_score: Annotated[float | None, Query(ge=0, le=1)] = None,
        min_gain: Annotated[float | None, Query(ge=-1e9, le=1e9)] = None,
    ) -> dict[str, Any]:
        content = await picture.read()
        shown = ShownPicture(0, clean_name(picture.filename or ""), content=content)
        record = await jobs.run(lambda: bench.detect_once(shown, keypoints, min_score, min_gain))
        titles = bench.state().titles
        found = [{**vars(one), "name": titles[one.type]} for one in record.found]
        return {
            "image": record.image, "width": record.width, "height": record.height, "found": found,
            "at_limit": record.limits.at_limit > 0,
        }  # fmt: skip


def _names(app: FastAPI, bench: Workbench) -> None:
    """Each of these answers with all types as they then are."""

    def done() -> dict[str, Any]:
        return bench.types(bench.filter)

    @app.get("/api/types", summary="All types: names, colours, counts, typical crops")
    def types(
        min_gain: Annotated[float | None, Query(ge=-1e9, le=1e9)] = None,
        min_score: Annotated[float | None, Query(ge=0, le=1)] = None,
        keypoints: Annotated[int | None, Query(ge=1, le=4096)] = None,
    ) -> dict[str, Any]:
        return bench.types(_filter(bench, min_gain, min_score, keypoints))

    @app.post("/api/names/set", summary="Name a type; an empty name takes it away")
    def rename(edit: Rename) -> dict[str, Any]:
        bench.edit(edit)
        return done()

    @app.post("/api/names/colour", summary="The colour of a type")
    def recolour(edit: Recolour) -> dict[str, Any]:
        bench.edit(edit)
        return done()

    @app.post("/api/names/hide", summary="Hide a type, or show it again")
    def hide(edit: Hide) -> dict[str, Any]:
        bench.edit(edit)
        return done()

    @app.post("/api/names/merge", summary="Merge one type into another")
    def merge(edit: Merge) -> dict[str, Any]:
        bench.edit(edit)
        return done()

    @app.post("/api/names/split", summary="Split a type in two, by the points that were found")
    def split(body: SplitBody) -> dict[str, Any]:
        bench.split(body.type)
        return done()

    @app.post("/api/names/teach", summary="Say what a few points are; types follow at once")
    def teach(body: TeachBody) -> dict[str, Any]:
        bench.teach([(one.picture, one.instance) for one in body.points], body.type, body.name)
        return done()

    @app.post("/api/names/sort", summary="No other kinds: all else goes to the nearest type that is named or clicked")
    def sort() -> dict[str, Any]:
        bench.sort()
        return done()

    @app.post("/api/names/correct", summary="Remove wrong points of a picture, add missing ones")
    def correct(body: CorrectBody) -> dict[str, Any]:
        bench.correct(body.picture, body.removed, body.added)
        return done()

    @app.post("/api/names/undo", summary="Undo the last change")
    def undo() -> dict[str, Any]:
        bench.names.undo()
        return done()

    @app.post("/api/names/redo", summary="Do again what was undone last")
    def redo() -> dict[str, Any]:
        bench.names.redo()
        return done()


def _session(app: FastAPI, bench: Workbench, jobs: Jobs, drawing: Jobs, rules: Rules) -> None:
    """What the page shows: pictures by their numbers."""

    def known(number: int) -> ShownPicture:
        picture = bench.pictures.get(number)
        if picture is None:
            raise HTTPException(404, "there is no such picture")
        return picture

    async def draw(work: Callable[[], Result]) -> Result:
        with drawing.place():
            return await drawing.run(work)

    @app.get("/api/session", summary="The model, and where the sliders stand")
    async def session() -> dict[str, Any]:
        config, settings = bench.model.config, bench.settings
        return {
            "model": bench.name, "version": __version__, "keypoints": settings.keypoints,
            "min_gain": bench.filter.min_gain, "min_score": settings.min_score, "names": str(bench.names.path),
            "masks": config.model.decode == "layers", "left_out": bench.pictures.left_out,
            "most_bytes": rules.most_bytes, "formats": KINDS,
        }  # fmt: skip

    @app.get("/api/pictures", summary="The pictures of this session")
    async def pictures() -> list[dict[str, Any]]:
        return [
            {"number": one.number, "name": one.name, "dropped": one.content is not None} for one in bench.pictures.all()
        ]

    @app.post("/api/pictures", summary="Add a picture to this session, in memory alone")
    async def add(picture: UploadFile) -> dict[str, Any]:
        content = await picture.read()
        shown = ShownPicture(0, clean_name(picture.filename or ""), content=content)
        await jobs.run(lambda: shown.read(64))  # refused here if it is none
        kept = bench.pictures.add(shown.name, content)
        return {"number": kept.number, "name": kept.name, "dropped": True}

    @app.delete("/api/pictures/{number}", summary="Forget a picture that was added")
    async def forget(number: Number) -> dict[str, Any]:
        if known(number).content is None:
            raise HTTPException(403, "pictures of the folder stay in the list")
        bench.forget(number)
        return {"forgotten": number}

    @app.get("/api/pictures/{number}/points", summary="Every point of a picture, whatever its gain")
    async def points(number: Number) -> dict[str, Any]:
        picture = known(number)
        if bench.found.get(number) is not None:
            return await draw(lambda: bench.points(picture, bench.detect(picture)))
        with jobs.place():
            return await jobs.run(lambda: bench.points(picture, bench.detect(picture)))

    @app.get("/api/pictures/{number}/image", summary="The picture, upright, as a browser can show it")
    async def image(number: Number, longest: Annotated[int, Query(ge=16, le=2048)] = 2048) -> Response:
        picture = known(number)
        content, media = await draw(lambda: bench.picture_bytes(picture, longest))
        return Response(content, media_type=media, headers={"cache-control": "no-cache"})

    @app.get("/api/pictures/{number}/mask.png", summary="Red + 256 green is 1 + the instance of a pixel")
    async def mask(number: Number) -> Response:
        known(number)
        found = bench.found.get(number)
        png = None if found is None else found.mask_png
        if png is None:
            raise HTTPException(404, "there are no masks of this picture")
        return Response(await draw(lambda: mask_for_page(png, _MASK)), media_type="image/png")

    @app.get("/api/pictures/{number}/crops/{instance}.png", summary="A point and what is around it")
    async def crop(number: Number, instance: Number) -> Response:
        content = bench.crop(number, instance)
        if content is None:
            raise HTTPException(404, "there is no such crop")
        return Response(content, media_type="image/png")

    @app.get("/api/types/{number}/prototype.png", summary="What the network takes for typical of a type")
    async def prototype(number: Number) -> Response:
        with jobs.place():
            return Response(await jobs.run(lambda: bench.prototype(number)), media_type="image/png")

    @app.get(
        "/api/download/{kind}",
        summary="What was found in the pictures that were looked at, as tables or for another tool",
    )
    async def save(
        kind: str,
        min_gain: Annotated[float | None, Query(ge=-1e9, le=1e9)] = None,
        min_score: Annotated[float | None, Query(ge=0, le=1)] = None,
        keypoints: Annotated[int | None, Query(ge=1, le=4096)] = None,
    ) -> Response:
        if kind not in KINDS:
            raise HTTPException(404, "there is no such format")
        keep = _filter(bench, min_gain, min_score, keypoints)

        def make() -> tuple[str, str, bytes]:
            return download(kind, bench.records(keep), bench.state().count, bench.labels(), bench.maker)

        name, media, content = await draw(make)
        return Response(content, media_type=media, headers={"content-disposition": f'attachment; filename="{name}"'})


def _filter(bench: Workbench, min_gain: float | None, min_score: float | None, keypoints: int | None) -> Filter:
    usual = bench.filter
    return Filter(
        usual.min_gain if min_gain is None else min_gain,
        usual.min_score if min_score is None else min_score,
        keypoints,
    )
