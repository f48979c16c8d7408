/** Schemathesis, which calls a server with what its OpenAPI document allows and with what it does not. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { environment, ROOT, run } from "../clients/python-environment.ts";

const pathOf = (name: string): string => fileURLToPath(new URL(name, import.meta.url));

const PACKAGES = readFileSync(pathOf("requirements.txt"), "utf8").split("\n").filter(Boolean);

/**
 * What is asked of each answer: no status from 500 on, none that is not listed, no valid request
 * refused, and the type, the headers and the schema that the document says.
 */
const CHECKS = [
  ...["not_a_server_error", "status_is_listed", "valid_request_is_taken"],
  ...["content_type_conformance", "response_headers_conformance", "response_schema_conformance"],
];

/** Calls made up for each operation in the short run. */
const SHORT_RUN_EXAMPLES = 3;

/** The length of a run by hand, for each document; undefined for the short one. */
const SECONDS = process.env.TESSERA_SCHEMATHESIS_SECONDS;

/** What exists, by the place and the name of a parameter. */
export interface Known {
  readonly path?: { readonly [name: string]: string };
  readonly query?: { readonly [name: string]: string };
  readonly body?: { readonly [name: string]: string };
  /** Ids that no call may end. */
  readonly kept?: readonly string[];
}

export interface Caller {
  readonly token: string;
  /** The value of the cookie of somebody who is signed in. */
  readonly session?: string;
}

/** Calls every operation of the document at `<url>/docs.json`. Rejects with all that was found. */
export async function callAll(url: string, caller: Caller, known: Known): Promise<void> {
  const { python } = await environment({ name: "schemathesis", packages: PACKAGES });
  const length =
    SECONDS === undefined
      ? ["--phases=examples,fuzzing", `--max-examples=${SHORT_RUN_EXAMPLES}`]
      : ["--phases=examples,coverage,fuzzing", `--max-time=${SECONDS}`];
  const args = [
    ...["-m", "schemathesis.cli", "run", `${url}/docs.json`, ...length],
    ...[`--checks=${CHECKS.join()}`, `--header=authorization: Bearer ${caller.token}`],
    ...["--workers=2", "--continue-on-failure", "--no-color", "--warnings=off"],
    ...["--generation-database=none", `--seed=${process.env.TESSERA_SCHEMATHESIS_SEED ?? "1"}`],
  ];
  await run(python, args, {
    // It keeps what it has found in the folder that it runs in.
    cwd: join(ROOT, "node_modules/.cache"),
    env: {
      SCHEMATHESIS_HOOKS: pathOf("hooks.py"),
      TESSERA_TOKEN: caller.token,
      TESSERA_SESSION: caller.session ?? "",
      TESSERA_KNOWN: JSON.stringify(known),
      NO_PROXY: "*",
    },
  });
}
