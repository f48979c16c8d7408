/**
 * Every place that starts a program, by its file, and what it starts. What somebody deploys is
 * started by `pool/launch/` alone, in the sandbox of the machine, and that includes the
 * interpreter of its environment: what is in an environment runs with it, before any program.
 */
export const PROGRAMS: Readonly<Record<string, string>> = {
  "src/artifacts/bundle.ts": "esbuild, which reads the sources of a service where it is built",
  "src/artifacts/compile.ts": "the same",
  "src/artifacts/trace.ts": "the same",
  "src/artifacts/environments/interpreters.ts":
    "an interpreter of the machine, with a program of ours and without site",
  "src/artifacts/environments/run-uv.ts": "uv, which is told which interpreter of the machine",
  "src/artifacts/layers/apt.ts":
    "apt-get of the machine, in a folder of ours, which downloads and installs nothing",
  "src/artifacts/layers/unpack.ts": "dpkg-deb of the machine, which unpacks and runs no script",
  "src/worker/relayed.ts":
    "skopeo of the machine, which is in the sandbox as this program is, beside the relay of its network",
  "src/artifacts/python/interpreter.ts":
    "the interpreter that a developer serves with, on the developer's machine",
  "src/worker/program.ts":
    "the program that is a server of the service, in the sandbox of its worker",
  "src/agent/launcher/run.ts":
    "programs of clusters (ssh, sbatch, kubectl, a shell), where somebody runs a launcher",
  "src/cli/deploy/git.ts": "git, which says what commit the code is of",
  "src/cli/browser.ts": "the user's browser",
  "src/pool/gpus/nvidia-smi.ts": "nvidia-smi of the driver, for the GPUs of the machine",
  "src/pool/launch/alone.ts": "workers and compilers where the operator wants no sandbox",
  "src/pool/sandbox/sandbox.ts": "setpriv, to see whether it works",
  "src/pool/sandbox/spawn.ts": "bubblewrap, with what it holds",
};

/** What starts programs, of Node and of packages. */
export const STARTERS = /^(?:node:)?(?:child_process|cluster)$|^esbuild$/;
