/** A mounted server: its own page, and its operations, each with its request for a shell. */
import { useMemo } from "react";
import { CopyButton } from "../../ui/copy-button.tsx";
import { curlOf, type MountOperation, type PlaygroundMount } from "./mounts.ts";
import type { PlaygroundTarget } from "./target.ts";

interface MountViewProps {
  readonly target: PlaygroundTarget;
  readonly mount: PlaygroundMount;
  /** The document that references in schemas point into. */
  readonly document: object;
  /** Of the page, or of a part of it. */
  readonly heading: "h1" | "h2";
}

export function MountView({ target, mount, document, heading: Heading }: MountViewProps) {
  const { path, description, operations } = mount;
  const all: readonly MountOperation[] =
    operations.length > 0 ? operations : [{ method: "GET", path, summary: "", operation: {} }];
  return (
    <article className="mount">
      <header>
        <div className="endpoint-title">
          <Heading>
            <bdi>{path}</bdi>
          </Heading>
          <span className="endpoint-kind">server</span>
          <a
            className="mount-page"
            href={new URL(path, target.url).href}
            target="_blank"
            rel="noreferrer"
          >
            Open <bdi>{path}</bdi>
          </a>
        </div>
        <p className="description">{description}</p>
      </header>
      <ul className="card mount-operations">
        {all.map((operation) => (
          <li key={`${operation.method} ${operation.path}`}>
            <Operation target={target} operation={operation} document={document} />
          </li>
        ))}
      </ul>
    </article>
  );
}

interface OperationProps {
  readonly target: PlaygroundTarget;
  readonly operation: MountOperation;
  readonly document: object;
}

function Operation({ target, operation, document }: OperationProps) {
  const { method, path, summary } = operation;
  const text = useMemo(() => curlOf(document, target, operation), [document, target, operation]);
  return (
    <details className="mount-operation">
      <summary>
        <code>
          {method} {path}
        </code>
        <span className="secondary">{summary}</span>
      </summary>
      <div className="mount-curl copied-from">
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard */}
        <pre tabIndex={0}>
          <code>{text}</code>
        </pre>
        <CopyButton text={text} what={`curl for ${method} ${path}`} />
      </div>
    </details>
  );
}
