/**
 * Writes docs/limits.md from the constants of src/: every interval, timeout,
 * size, count and rate by which the platform bounds something. A test holds
 * the page and the constants together, and sees that none escapes by its name.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { posix } from "node:path";
import { fileURLToPath } from "node:url";
import { MAX_ORGANIZATION_SHARE } from "../src/collections/shared-bound.ts";
import { type Constant, constants } from "./limits/constants.ts";
import { format, KINDS, type Kind } from "./limits/kinds.ts";
import { NOT_LIMITS, UNITS } from "./limits/not-limits.ts";

export const LIMITS_PATH = fileURLToPath(new URL("../docs/limits.md", import.meta.url));

/** Those that bound something. Throws for one that does not say what. */
export function limits(): readonly (Constant & { readonly kind: Kind; readonly doc: string })[] {
  return constants.flatMap((it) => {
    const { kind, doc } = it;
    if (kind === undefined || isNoLimit(it)) {
      return [];
    }
    if (doc === undefined) {
      throw new Error(`${it.name} in ${it.file} has no doc comment that says what it bounds`);
    }
    return [{ ...it, kind, doc }];
  });
}

/** Whether it is a unit, or stands in the list of numbers that bound nothing. */
export function isNoLimit({ name, file }: Constant): boolean {
  return UNITS.has(name) || NOT_LIMITS.has(`${file} ${name}`);
}

/** The whole document. */
export function limitsDocument(): string {
  const all = limits();
  const heartbeats = all
    .filter(({ name }) => isHeartbeat(name))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
  const others = all.filter(({ name }) => !isHeartbeat(name));
  return `# Intervals and limits

This page is made from the constants in \`src/\` by \`node scripts/limits.ts\`.

Everything that waits, repeats or grows is bounded. The constants below are built in; what an operator sets is in [configuration.md](configuration.md), and what an author of a service sets is in [typescript.md](typescript.md). The text of each row is the comment at its declaration.

## Heartbeats

Each heartbeat is a sign of life at an interval. The other side counts the sender as lost when none came for the timeout.

${table(heartbeats)}
${sharedBounds(all)}${KINDS.map(({ kind, title, intro }) => {
  const rows = others.filter((it) => it.kind === kind);
  const folders = [...Map.groupBy(rows, folderOf)].sort(([a], [b]) => (a < b ? -1 : 1));
  return `
## ${title}

${intro}

${folders.map(([folder, some]) => `### \`${folder}\`\n\n${table(some)}`).join("\n")}`;
}).join("")}`;
}

/** The bounds of a node, of which one organization has a share. */
function sharedBounds(all: ReturnType<typeof limits>): string {
  const shared = all.filter(({ name, file }) =>
    readFileSync(new URL(`../${file}`, import.meta.url), "utf8").includes(`SharedBound(${name})`),
  );
  const lines = shared.map(
    ({ name, value, file }) =>
      `| \`${name}\` | ${format(name, value)} | ${format(name, Math.ceil(value * MAX_ORGANIZATION_SHARE))} | [${posix.basename(file)}](../${file}) |`,
  );
  return `## Shares

Of these bounds of a whole node, one organization has three quarters at most, so that there is room for others. The same holds for the memory of bodies ([\`bodyBudget\`](configuration.md)).

| name | of the node | of one organization | file |
|---|---|---|---|
${lines.join("\n")}
`;
}

/** A worker's lease lives by its heartbeat. */
function isHeartbeat(name: string): boolean {
  return name.includes("HEARTBEAT") || name === "LEASE_DURATION_MS";
}

function folderOf({ file }: Constant): string {
  return file.split("/").slice(0, 2).join("/");
}

function table(rows: readonly (Constant & { readonly kind: Kind })[]): string {
  const lines = rows.map(({ name, value, doc = "", file }) => {
    const text = doc.replaceAll("|", "\\|").replaceAll("<", "&lt;");
    return `| \`${name}\` | ${format(name, value)} | ${text} | [${posix.basename(file)}](../${file}) |`;
  });
  return `| name | value | what it bounds | file |\n|---|---|---|---|\n${lines.join("\n")}\n`;
}

if (import.meta.main) {
  writeFileSync(LIMITS_PATH, limitsDocument());
}
