"""Jars from Maven Central, by `mvn` and a small pom: a Kafka broker, Spark's connectors, Delta.

They lie in `.programs/jars/<set>`; Spark gets them as local files through `spark.jars`. Maven's own
repository goes when they are there. Run again, it costs nothing.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import ssl
import struct
from pathlib import Path

from setup import PROGRAMS, Missing, apt, digest, run, say, unpack

REPOSITORY = PROGRAMS / "m2"
JARS = PROGRAMS / "jars"
# Name of the set, and its jars. Spark has what its connectors need beyond these; the broker is
# brought with everything that it needs.
SETS = {
    "broker": (
        "org.apache.kafka:kafka_2.13:4.3.1",
        "org.apache.logging.log4j:log4j-slf4j-impl:2.25.4",  # its last words, when it fails
    ),
    # The connector of 4.2.0 is the newest that could be had in full, but for its token provider
    # (delegation tokens, which no test uses).
    "kafka-4": (
        "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
        "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
        "org.apache.kafka:kafka-clients:3.9.2",
        "org.apache.commons:commons-pool2:2.13.1",
    ),
    "kafka-3": (
        "org.apache.spark:spark-sql-kafka-0-10_2.12:3.5.7",
        "org.apache.spark:spark-token-provider-kafka-0-10_2.12:3.5.7",
        "org.apache.kafka:kafka-clients:3.4.1",
        "org.apache.commons:commons-pool2:2.11.1",
    ),
    # The newest, for a Spark of at most 4.2.0: see setup.SPARKS.
    "delta-4": (
        "io.delta:delta-spark_4.2_2.13:4.4.0",
        "io.delta:delta-storage:4.4.0",
        "io.delta:delta-kernel-api:4.4.0",
        "io.delta:delta-kernel-defaults:4.4.0",
        "io.delta:delta-kernel-unitycatalog:4.4.0",
    ),
}
# What each word of the command line brings.
WANTED = {"kafka": ("broker", "kafka-4", "kafka-3"), "delta": ("delta-4",)}


def bring_jars(word: str) -> None:
    """Put the sets of one word into .programs/jars, unless these versions of them are there."""
    missing = [name for name in WANTED[word] if not _is_there(name)]
    if not missing:
        return
    mvn = find_mvn()
    for name in missing:
        say(f"{name} from Maven Central")
        folder = JARS / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        (folder / "pom.xml").write_text(_pom(name))
        run(
            *(mvn, "-B", "-q", f"-Dmaven.repo.local={REPOSITORY}", *_trust()),
            *("dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory=."),
            cwd=folder,
        )
        (folder / "streamgauge.stamp").write_text(_state(name))
    shutil.rmtree(REPOSITORY, ignore_errors=True)


def _state(name: str) -> str:
    return digest("scripts/setup_jars.py", name, *SETS[name])


def _is_there(name: str) -> bool:
    stamp = JARS / name / "streamgauge.stamp"
    return stamp.is_file() and stamp.read_text() == _state(name)


def _pom(name: str) -> str:
    alone = "" if name == "broker" else _ALONE
    rows = "".join(_DEPENDENCY.format(*jar.split(":"), alone) for jar in SETS[name])
    return _POM.format(rows)


_POM = (
    "<project><modelVersion>4.0.0</modelVersion><groupId>streamgauge</groupId>"
    "<artifactId>jars</artifactId><version>0</version><packaging>pom</packaging>"
    "<dependencies>{}</dependencies></project>\n"
)
_DEPENDENCY = "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>{}</dependency>"
_ALONE = (
    "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
)


def find_mvn() -> Path:
    """The machine's own Maven, else Debian's unpacked, without the Java that it would bring."""
    found = shutil.which("mvn")
    if found:
        return Path(found)
    place = PROGRAMS / "root" / "usr/share/maven/bin/mvn"
    if not place.exists():
        say("maven from Debian's packages")
        everything = ("-o", "Dir::State::status=/dev/null")  # as if nothing were installed
        plan = apt("-s", *everything, "--no-install-recommends", "install", "maven")
        for package in re.findall(r"^Inst (maven|lib\S+-java)\b", plan, re.MULTILINE):
            unpack(package)
    if not place.exists():
        raise Missing("there is no Maven on this machine; `apt-get install maven` brings it")
    return place


def _trust() -> list[str]:
    """Where Java finds the machine's certificates; an unpacked Java has none of its own."""
    java = shutil.which("java")
    home = Path(java).resolve().parent.parent if java else PROGRAMS
    if (home / "lib/security/cacerts").exists():
        return []
    store = PROGRAMS / "cacerts.jks"
    store.write_bytes(_keystore(_certificates()))
    return [f"-Djavax.net.ssl.trustStore={store}", "-Djavax.net.ssl.trustStoreType=JKS"]


def _certificates() -> list[bytes]:
    """The certificates that this machine trusts."""
    paths = ssl.get_default_verify_paths()
    for place in (
        os.environ.get("SSL_CERT_FILE"),
        paths.cafile,
        f"{paths.capath}/ca-certificates.crt",
    ):
        if place and Path(place).is_file():
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.load_verify_locations(place)
            return context.get_ca_certs(binary_form=True)
    raise Missing("there are no certificates here; `apt-get install ca-certificates` brings them")


def _keystore(certificates: list[bytes]) -> bytes:
    """A Java key store (JKS 2) with nothing but trusted certificates in it."""
    body = struct.pack(">III", 0xFEEDFEED, 2, len(certificates))
    for number, certificate in enumerate(certificates):
        body += struct.pack(">I", 2) + _text(f"c{number}") + struct.pack(">Q", 0)
        body += _text("X.509") + struct.pack(">I", len(certificate)) + certificate
    salt = "changeit".encode("utf-16-be") + b"Mighty Aphrodite"
    return body + hashlib.sha1(salt + body, usedforsecurity=False).digest()


def _text(word: str) -> bytes:
    return struct.pack(">H", len(word)) + word.encode()
