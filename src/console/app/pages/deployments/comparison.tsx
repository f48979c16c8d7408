/** What a revision changed in the code since another one, and what its roll-out wrote. */
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import type {
  ChangeKindJson,
  CompareRevisionsResponseJson,
  FileChangeJson,
  RevisionJson,
} from "../../../../../gen/tessera/v1/deployment_pb.js";
import { comparisonOf, revisionFileOf, rolloutLogOf } from "../../api/deployments.ts";
import { messageOf } from "../../api/errors.ts";
import { useOrganization } from "../../api/session.ts";
import { counted } from "../../ui/counted.ts";
import { DataTable } from "../../ui/data-table.tsx";
import { Field } from "../../ui/field.tsx";
import { Loading } from "../../ui/loading.tsx";
import { Notice } from "../../ui/notice.tsx";
import { bytes } from "../../ui/quantity.ts";
import { Status, type Tone } from "../../ui/status.tsx";
import { readComparison } from "./comparison-search.ts";
import { useDeploymentName } from "./frame.tsx";
import { type DiffLine, diffLines, type Fold, folded } from "./line-diff.ts";
import "./file-diff.css";
import "../../ui/log.css";

interface ComparisonProps {
  /** The numbers of the revisions that it can be compared with. */
  readonly numbers: readonly number[];
  readonly revision: RevisionJson;
  readonly base: number;
}

/** Nothing where there is no other revision to compare it with. */
export function Comparison({ numbers, revision: { revision = 0 }, base }: ComparisonProps) {
  const organization = useOrganization();
  const name = useDeploymentName();
  const { data, error } = useQuery({
    ...comparisonOf(organization, name, { revision, base }),
    enabled: revision !== base,
  });
  if (numbers.length < 2) {
    return null;
  }
  return (
    <>
      <header className="compared">
        <h2>{`What r${revision} changed`}</h2>
        <Base value={base} of={revision} numbers={numbers} />
      </header>
      {error && <Notice kind="error">{messageOf(error)}</Notice>}
      {revision === base ? (
        <p className="secondary">Choose a revision to compare it with.</p>
      ) : data === undefined ? (
        error === null && <Loading />
      ) : (
        <Changes found={data} />
      )}
    </>
  );
}

interface BaseProps {
  readonly value: number;
  /** The revision that is compared with it. */
  readonly of: number;
  readonly numbers: readonly number[];
}

function Base({ value, of: revision, numbers }: BaseProps) {
  const navigate = useNavigate();
  return (
    <Field label="Compared with">
      {(control) => (
        <select
          {...control}
          value={value}
          onChange={({ target }) =>
            void navigate({
              to: ".",
              search: (now: object) => ({
                ...now,
                // A link goes on to show this revision when a newer one is there.
                open: String(revision),
                ...readComparison({ base: target.value }),
              }),
              replace: true,
              resetScroll: false,
            })
          }
        >
          {[...new Set([...numbers, value])].map((number) => (
            <option key={number} value={number}>
              r{number}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

function Changes({ found }: { readonly found: CompareRevisionsResponseJson }) {
  const { files = [], changedFiles = 0, endpoints = [] } = found;
  if (changedFiles === 0) {
    return <p className="secondary">Their code is the same.</p>;
  }
  return (
    <>
      {endpoints.length > 0 && (
        <DataTable
          label="Endpoints that differ"
          items={endpoints}
          keyOf={({ name = "" }) => name}
          columns={[
            { name: "Endpoint", cell: ({ name }) => name },
            { name: "Change", cell: ({ kind }) => <Change kind={kind} /> },
          ]}
        />
      )}
      <div className="changed-files">
        {files.map((file) => (
          <ChangedFile key={file.path} file={file} found={found} />
        ))}
      </div>
      {changedFiles > files.length && (
        <p className="secondary">and {counted(changedFiles - files.length, "more file")}</p>
      )}
    </>
  );
}

/** A file that differs: with the first look at it, its lines. */
function ChangedFile({
  file,
  found,
}: {
  readonly file: FileChangeJson;
  readonly found: CompareRevisionsResponseJson;
}) {
  const { path = "" } = file;
  // The map of a compiled module is for machines.
  const [isOpen, setOpen] = useState(!path.endsWith(".map") && (found.files ?? []).length <= 3);
  return (
    <details
      className="changed-file"
      open={isOpen}
      onToggle={({ currentTarget }) => setOpen(currentTarget.open)}
    >
      <summary>
        <code>{path}</code>
        <Change kind={file.kind} />
        <span className="secondary">{sizesOf(file)}</span>
      </summary>
      {isOpen && (
        <FileDiff
          file={file}
          revision={found.revision?.revision ?? 0}
          base={found.base?.revision ?? 0}
        />
      )}
    </details>
  );
}

const KINDS: Readonly<Record<ChangeKindJson, readonly [word: string, tone: Tone]>> = {
  CHANGE_KIND_UNSPECIFIED: ["unknown", "idle"],
  CHANGE_KIND_ADDED: ["added", "good"],
  CHANGE_KIND_REMOVED: ["removed", "bad"],
  CHANGE_KIND_CHANGED: ["changed", "working"],
};

function Change({
  kind = "CHANGE_KIND_UNSPECIFIED",
}: {
  readonly kind: ChangeKindJson | undefined;
}) {
  const [word, tone] = KINDS[kind];
  return <Status tone={tone}>{word}</Status>;
}

function sizesOf({ kind, sizeBytes = "0", baseSizeBytes = "0" }: FileChangeJson): string {
  const [is, was] = [bytes(Number(sizeBytes)), bytes(Number(baseSizeBytes))];
  if (kind === "CHANGE_KIND_CHANGED") {
    return is === was ? is : `${was} to ${is}`;
  }
  return kind === "CHANGE_KIND_REMOVED" ? was : is;
}

/** What the nodes and the workers of a revision wrote while it was rolled out. */
export function RolloutLog({ of: revision }: { readonly of: RevisionJson }) {
  const organization = useOrganization();
  const name = useDeploymentName();
  const { data: lines, error } = useQuery(rolloutLogOf(organization, name, revision));
  if (error) {
    return <Notice kind="error">{messageOf(error)}</Notice>;
  }
  if (lines === undefined) {
    return <Loading />;
  }
  return lines.length === 0 ? (
    <p className="secondary">
      It wrote nothing, or its lines are gone: the newest 10,000 are kept.
    </p>
  ) : (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard
    <section className="log-lines rollout-log" aria-label="Log of its roll-out" tabIndex={0}>
      {lines.map(({ sequence, time = "", stream, level, text }) => (
        <div key={sequence} className={`log-line ${stream} ${level}`}>
          <time dateTime={time}>{time.slice(11, 19)}</time>
          <span>{text}</span>
        </div>
      ))}
    </section>
  );
}

// The difference of a file between two revisions, line by line; what is the same is folded.

/** Lines that are shown of one file; a page with more would not scroll any more. */
const MAX_SHOWN_LINES = 2_000;

/** Characters that are shown of one line. */
const MAX_SHOWN_CHARACTERS = 2_000;

interface FileDiffProps {
  readonly file: FileChangeJson;
  readonly revision: number;
  readonly base: number;
}

function FileDiff({ file: { path = "", kind }, revision, base }: FileDiffProps) {
  const organization = useOrganization();
  const name = useDeploymentName();
  const before = useQuery({
    ...revisionFileOf(organization, name, { revision: base, path }),
    enabled: kind !== "CHANGE_KIND_ADDED",
  });
  const after = useQuery({
    ...revisionFileOf(organization, name, { revision, path }),
    enabled: kind !== "CHANGE_KIND_REMOVED",
  });
  const error = before.error ?? after.error;
  if (error) {
    return <Notice kind="error">{messageOf(error)}</Notice>;
  }
  if (before.isLoading || after.isLoading) {
    return <Loading />;
  }
  const [was, is] = [
    kind === "CHANGE_KIND_ADDED" ? "" : before.data?.text,
    kind === "CHANGE_KIND_REMOVED" ? "" : after.data?.text,
  ];
  return was === undefined || is === undefined ? (
    <p className="secondary">It is no text, or larger than 512 KiB.</p>
  ) : (
    <Lines path={path} parts={folded(diffLines(was, is))} />
  );
}

function Lines({
  path,
  parts,
}: {
  readonly path: string;
  readonly parts: readonly (DiffLine | Fold)[];
}) {
  const shown = parts.slice(0, MAX_SHOWN_LINES);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard
    <section className="diff" aria-label={`Changes of ${path}`} tabIndex={0}>
      <table>
        {shown.map((part) =>
          part.kind === "fold" ? (
            <Folded key={`fold-${part.lines[0]?.after}`} lines={part.lines} />
          ) : (
            <tbody key={`${part.before}-${part.after}`}>
              <Line line={part} />
            </tbody>
          ),
        )}
      </table>
      {parts.length > shown.length && (
        <p className="secondary">and {counted(parts.length - shown.length, "more line")}</p>
      )}
    </section>
  );
}

/** Lines that are the same. A compiled service names its sources above their parts. */
function Folded({ lines }: { readonly lines: readonly DiffLine[] }) {
  const [isOpen, setOpen] = useState(false);
  if (isOpen) {
    return (
      <tbody>
        {lines.slice(0, MAX_SHOWN_LINES).map((line) => (
          <Line key={line.after} line={line} />
        ))}
      </tbody>
    );
  }
  const source = lines.findLast(({ text }) => /^\/\/ \S+\.\w+$/.test(text))?.text.slice(3);
  return (
    <tbody>
      <tr className="diff-fold">
        <td colSpan={4}>
          <button type="button" onClick={() => setOpen(true)}>
            {counted(lines.length, "line")} the same
          </button>
          {source !== undefined && <code>{source}</code>}
        </td>
      </tr>
    </tbody>
  );
}

const SIGNS = { same: "", removed: "−", added: "+" } as const;

function Line({ line: { kind, text, before, after } }: { readonly line: DiffLine }) {
  return (
    <tr className={`diff-${kind}`}>
      <td className="diff-number">{before}</td>
      <td className="diff-number">{after}</td>
      <td className="diff-sign">{SIGNS[kind]}</td>
      <td>
        <code>{text.slice(0, MAX_SHOWN_CHARACTERS)}</code>
      </td>
    </tr>
  );
}
