/** The difference of a file between two revisions, line by line; what is the same is folded. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { FileChangeJson } from "../../../../../gen/tessera/v1/deployment_pb.js";
import { revisionFileOf } from "../../api/deployments.ts";
import { messageOf } from "../../api/errors.ts";
import { useOrganization } from "../../api/session.ts";
import { counted } from "../../ui/counted.ts";
import { Loading } from "../../ui/loading.tsx";
import { Notice } from "../../ui/notice.tsx";
import { useDeploymentName } from "./frame.tsx";
import { type DiffLine, diffLines, type Fold, folded } from "./line-diff.ts";
import "./file-diff.css";

/** Lines that are shown of one file; a page with more would not scroll any more. */
const MAX_SHOWN_LINES = 2_000;

/** Characters that are shown of one line. */
const MAX_SHOWN_CHARACTERS = 2_000;

interface FileDiffProps {
  readonly file: FileChangeJson;
  readonly revision: number;
  readonly base: number;
}

export function FileDiff({ file: { path = "", kind }, revision, base }: FileDiffProps) {
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
