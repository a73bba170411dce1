"""TrackMate (Fiji): all pictures as the frames of one film, every thing as a spot, in pixels.

It is a TrackMate file without tracks: open it with "Load a TrackMate file" and link the spots there.
"""

from __future__ import annotations

from pathlib import Path
from xml.etree.ElementTree import Element

from tusk.detection.records import Instance, Record
from tusk.export.found import Found, mask_of
from tusk.export.outlines import polygons_of
from tusk.export.xml import add, write_xml

# Name, short name, dimension and whether it is a whole number.
_FEATURES = {
    "QUALITY": ("Quality", "Quality", "QUALITY", False),
    "POSITION_X": ("X", "X", "POSITION", False),
    "POSITION_Y": ("Y", "Y", "POSITION", False),
    "POSITION_Z": ("Z", "Z", "POSITION", False),
    "POSITION_T": ("T", "T", "TIME", False),
    "FRAME": ("Frame", "Frame", "NONE", True),
    "RADIUS": ("Radius", "R", "LENGTH", False),
    "VISIBILITY": ("Visibility", "Visibility", "NONE", True),
    "TUSK_TYPE": ("Type", "Type", "NONE", True),
    "TUSK_GAIN": ("Gain", "Gain", "NONE", False),
    "TUSK_PROBABILITY": ("Probability of the type", "Prob.", "NONE", False),
}


def write(found: Found, folder: Path) -> Path:
    root = Element("TrackMate", version="7.11.1")
    model = add(root, "Model", spatialunits="pixel", timeunits="frame")
    declared = add(model, "FeatureDeclarations")
    features = add(declared, "SpotFeatures")
    for name, (words, short, dimension, whole) in _FEATURES.items():
        kind = {"feature": name, "name": words, "shortname": short, "dimension": dimension}
        add(features, "Feature", **kind, isint=str(whole).lower())
    add(declared, "EdgeFeatures")
    add(declared, "TrackFeatures")
    spots = add(model, "AllSpots", nspots=sum(len(picture.found) for picture in found.pictures))
    number = 0
    for frame, picture in enumerate(found.pictures):
        together = add(spots, "SpotsInFrame", frame=frame)
        for one in picture.found:
            _add_spot(together, picture, one, found.name(one), frame, number)
            number += 1
    add(model, "AllTracks")
    add(model, "FilteredTracks")
    _add_settings(root, found)
    path = folder / "spots.xml"
    write_xml(path, root)
    return path


def _add_spot(above: Element, picture: Record, one: Instance, name: str, frame: int, number: int) -> None:
    values = {
        "QUALITY": one.score,
        "POSITION_X": one.x,
        "POSITION_Y": one.y,
        "POSITION_Z": 0.0,
        "POSITION_T": float(frame),
        "FRAME": frame,
        "RADIUS": one.size / 2,
        "VISIBILITY": 1,
        "TUSK_TYPE": one.type,
        "TUSK_GAIN": one.gain,
        "TUSK_PROBABILITY": one.probability,
    }
    mask, outline = mask_of(picture, one), None
    if mask is not None:
        # A spot has one outline, without holes, relative to its place: that of its largest part.
        ring = max((polygon.outer for polygon in polygons_of(mask)), key=len)
        places = (f"{x - 0.5 - one.x:.2f} {y - 0.5 - one.y:.2f}" for x, y in ring)
        outline, values["ROI_N_POINTS"] = " ".join(places), len(ring)
    add(above, "Spot", outline, ID=number, name=name, **values)


def _add_settings(root: Element, found: Found) -> None:
    settings = add(root, "Settings")
    width = max((picture.width for picture in found.pictures), default=0)
    height = max((picture.height for picture in found.pictures), default=0)
    add(
        settings,
        "ImageData",
        filename="",
        folder="",
        width=width,
        height=height,
        nslices=1,
        nframes=len(found.pictures),
        pixelwidth=1.0,
        pixelheight=1.0,
        voxeldepth=1.0,
        timeinterval=1.0,
    )
    ends = {"xstart": 0, "xend": width - 1, "ystart": 0, "yend": height - 1, "zstart": 0, "zend": 0}
    add(settings, "BasicSettings", **ends, tstart=0, tend=len(found.pictures) - 1)
    add(settings, "InitialSpotFilter", feature="QUALITY", value=0.0, isabove="true")
    add(settings, "SpotFilterCollection")
    add(settings, "TrackFilterCollection")
    # Which picture each frame is: TrackMate knows one file only, and passes this over.
    pictures = add(root, "TuskPictures")
    for frame, picture in enumerate(found.pictures):
        add(pictures, "Picture", frame=frame, name=picture.image, width=picture.width, height=picture.height)
