"""Kittiwake from Java (`kittiwake-java`): the programs of bench/java and apps/*/java, compiled by
mpijavac and started by mpiexec as those in C are; Java is what `java` on PATH is, or KW_JAVA."""

import os
import shlex
import shutil

from . import libraries
from .libraries import JAVA

# Ranks share the processors with each other and with the machine's own threads.
OPTIONS = ("-XX:+UseSerialGC", "-Xms256m", "-XX:-UsePerfData")


class JavaLibrary(libraries.Library):
    """The Java bindings of an installation of Kittiwake, as one more library."""

    def __init__(self, dist, **how):
        super().__init__(JAVA, dist / "bin/mpijavac", dist / "bin/mpiexec", **how)
        self.jar = dist / "share/java/mpi.jar"

    def lacks(self):
        if not self.jar.exists():
            return (
                f"there is no {self.jar}: `scripts/install-deps - java` installs a JDK, "
                "`make stage` then builds the bindings"
            )
        absent = [word for word in ("javac", self.command_of_java()) if not shutil.which(word)]
        return f"there is no {' and no '.join(absent)}" if absent else super().lacks()

    @staticmethod
    def command_of_java():
        return os.environ.get("KW_JAVA", "java")

    def build(self, name, *more):
        """Compiles bench/java; the path of a script that runs the program which stands for
        bench/NAME.c. Raises Failed, Unavailable."""
        return self.compiled(libraries.ROOT / "bench/java", name, libraries.WORK / JAVA)

    def build_application(self, directory, name):
        """Compiles apps/DIRECTORY/java; the words that start the program which stands for NAME.
        Raises Failed, Unavailable."""
        source = libraries.ROOT / "apps" / directory / "java"
        return [str(self.compiled(source, name, libraries.WORK / "apps" / JAVA / directory))]

    def compiled(self, source, name, target):
        main = name.capitalize()
        if not (source / f"{main}.java").exists():
            raise libraries.Unavailable(f"there is no {main}.java in {source}")
        target.mkdir(parents=True, exist_ok=True)
        libraries.answer([self.compiler, "-d", target, *sorted(source.glob("*.java"))])
        java = shutil.which(self.command_of_java())
        words = [java, *OPTIONS, "-cp", f"{target}:{self.jar}", main]
        script = target / f"{name}-{os.getpid()}"
        script.write_text(f'#!/bin/sh\nexec {shlex.join(map(str, words))} "$@"\n')
        script.chmod(0o755)
        return script.replace(target / name)
