/**
 * Writes docs/troubleshooting.md: each error of the catalogue with its code, its
 * meaning from the comment in the proto, and what to do. A test holds the page
 * and the catalogue together.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { codeToString } from "@connectrpc/connect/protocol-connect";
import { CATALOGUE, problem, type Reason } from "../src/errors.ts";
import { httpStatus } from "../src/server/http/error-status.ts";
import { REMEDIES } from "./troubleshooting/remedies.ts";

export const TROUBLESHOOTING_PATH = fileURLToPath(
  new URL("../docs/troubleshooting.md", import.meta.url),
);

const PROTO = new URL("../proto/tessera/v1/error.proto", import.meta.url);

/** The comment of each reason, on one line. */
function meanings(): Map<string, string> {
  const found = readFileSync(PROTO, "utf8").matchAll(
    /((?: {2}\/\/ .*\n)+) {2}ERROR_REASON_(\w+) = \d+;/g,
  );
  return new Map(
    [...found].map(([, comment = "", reason = ""]) => [
      reason,
      comment
        .replaceAll(/^ {2}\/\/ /gm, "")
        .trim()
        .replaceAll("\n", " "),
    ]),
  );
}

/** The whole document. */
export function troubleshooting(): string {
  const meaning = meanings();
  const sections = (Object.keys(CATALOGUE) as Reason[]).sort().map((reason) => {
    const text = meaning.get(reason);
    if (text === undefined) {
      throw new Error(`${reason} has no comment in error.proto`);
    }
    const answer = `HTTP ${httpStatus(problem(reason, ""))}, \`${codeToString(CATALOGUE[reason])}\``;
    return `### ${reason}\n\n${answer}. ${text}\n\n**What to do:** ${REMEDIES[reason]}\n`;
  });
  return `# Troubleshooting

This page is made from the catalogue of errors by \`node scripts/troubleshooting.ts\`.

## Read an error

Every error, in every protocol, has a \`code\`, a \`message\` for people, and \`details\`: among them the **reason**, for programs, and the request's id, for the operator's log. The reason is one of those below.

\`\`\`json
{
  "code": "not_found",
  "message": "…",
  "details": [{ "type": "google.rpc.ErrorInfo", "debug": { "reason": "TASK_NOT_FOUND", "domain": "tessera" } }]
}
\`\`\`

The codes below are the platform's own; an error that a function throws has the code that the function sets. \`Retry-After\` says after how many seconds to repeat the call; our clients do. A refused connection means that no node listens at the address (\`/livez\` tells). A 502 or 504 comes from a proxy in front ([production](production.md)).

## When something is wrong with the platform

| | command |
|---|---|
| a deployment does not start, or answers slowly | \`tessera deployment get NAME\`, \`logs NAME\`, \`metrics NAME --since 1h\` |
| tasks wait | \`tessera worker list --deployment NAME\`; [how workers scale](scaling.md) |
| the node is not ready | \`curl localhost:3000/readyz?verbose\` |
| the database, its pooler, the clocks, the sandbox | \`tessera admin check\` |
| who uses the memory and the workers of the nodes | \`tessera admin nodes\` |

## Reasons

${sections.join("\n")}`;
}

if (import.meta.main) {
  writeFileSync(TROUBLESHOOTING_PATH, troubleshooting());
}
