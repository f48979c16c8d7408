/**
 * `tessera deploy`: creates the next revision of a deployment. It builds the
 * service, uploads the files that the platform does not have, and then stores
 * the revision with one call; until that call nothing has changed.
 */
import type { Command } from "commander";
import { PROBE_OPTION, PYTHON_OPTIONS } from "../building.ts";
import { callCommand, option, repeatable, type Surroundings } from "../command.ts";
import { SETTINGS_OPTIONS } from "../deployment/settings.ts";
import { type DeployFlags, deployPlan } from "./plan.ts";
import { Deploying } from "./run.ts";

const DESCRIPTION = `Deploy a service: build it, upload what is missing, and wait until it is ready.
Give the file of a service, an artifact that tessera build made, a folder with a
tessera.yaml, or the manifest (JSON) of a service whose workers bring their own
code and join from other machines. What is not given stays as it is, or has its
default in a new deployment. Calls and tasks go on meanwhile.`;

export function deployCommand(surroundings: Surroundings): Command {
  return callCommand<DeployFlags>("deploy", surroundings, {
    description: DESCRIPTION,
    arguments: [
      ["[service]", "service, artifact, folder or manifest (default: what ./tessera.yaml says)"],
    ],
    options: [
      option("--name <name>", "the deployment's name, a DNS label (default: the service's own)"),
      ...SETTINGS_OPTIONS,
      repeatable("--secret <NAME>", "a secret for the workers: asked for, or NAME=@file"),
      repeatable("--remove-secret <NAME>", "forget a secret"),
      repeatable("--include <glob>", "add files or folders, from the service's folder"),
      ...PYTHON_OPTIONS,
      PROBE_OPTION,
      option("-f, --file <path>", "file of settings (default: tessera.yaml of the folder)"),
      option("--no-git", "do not tell the platform the commit, the branch and its message"),
      option("--no-wait", "do not wait until it is ready"),
    ],
    examples: [
      "tessera deploy service.ts --name summarizer",
      "tessera deploy service.ts --authorization --workers 1..4 --memory 1Gi",
      "tessera deploy service.ts --env MODEL=small --secret API_KEY=@key.txt",
      "tessera deploy service.py --memory 2Gi",
      "tessera deploy service.py --place remote --require gpu=*",
      "tessera deploy manifest.json --name digits",
      "tessera deploy                        what ./tessera.yaml says",
    ],
    run: async (call, flags, [path]) => {
      const plan = await deployPlan(path, flags);
      await new Deploying(call, plan, surroundings).run({ wait: flags.wait, git: flags.git });
    },
  });
}
