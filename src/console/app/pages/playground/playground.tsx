/**
 * The playground of a deployment: its endpoints, each with the form of its arguments, and its
 * mounted servers. The address names the endpoint and the task that are shown: `#/endpoint/task`.
 */
import { Activity, useEffect, useId, useMemo, useRef } from "react";
import { Button } from "../../ui/button.tsx";
import { CopyButton } from "../../ui/copy-button.tsx";
import { useFinder } from "../../ui/finder.tsx";
import { Loading } from "../../ui/loading.tsx";
import { CallFailure } from "./call-failure.tsx";
import type { PlaygroundEndpoint } from "./description.ts";
import { EndpointView, KindBadge } from "./endpoint-view.tsx";
import type { LinkedTarget } from "./linked-target.ts";
import { curlOf, type MountOperation, type PlaygroundMount } from "./mounts.ts";
import { hashOf, RecentTasks } from "./recent.tsx";
import type { PlaygroundTarget } from "./target.ts";
import { useDescription } from "./use-description.ts";
import "./playground.css";

interface PlaygroundProps {
  readonly target: LinkedTarget;
  /** Of the address. */
  readonly hash: string;
  /** It is the whole page, and so has its heading and its title. */
  readonly isPage?: boolean;
}

export function Playground({ target, hash, isPage = false }: PlaygroundProps) {
  const { data: service, error, refetch } = useDescription(target);
  const Main = isPage ? "main" : "div";
  return (
    <div className={isPage ? "playground whole" : "playground"}>
      {service ? (
        <Endpoints {...service} target={target} hash={hash} isPage={isPage} />
      ) : (
        <Main {...(isPage && { id: "main" })}>
          {error === null ? (
            <Loading />
          ) : (
            <>
              <CallFailure error={error} />
              <Button onClick={() => void refetch()}>Try again</Button>
            </>
          )}
        </Main>
      )}
    </div>
  );
}

interface EndpointsProps extends Required<PlaygroundProps> {
  readonly name: string;
  readonly endpoints: readonly PlaygroundEndpoint[];
  readonly mounts: readonly PlaygroundMount[];
  /** The document that references in schemas point into. */
  readonly document: object;
}

function Endpoints(props: EndpointsProps) {
  const { name: service, endpoints, mounts, document: docs, target, hash, isPage } = props;
  const place = usePlace(hash);
  const [wanted = "", taskId] = place.slice("#/".length).split("/").map(decoded);
  const named = mounts.find(({ path }) => path === wanted);
  const first = endpoints.length === 0 ? mounts[0] : undefined;
  const endpoint = endpoints.find(({ name }) => name === wanted) ?? endpoints[0];
  const mount = named ?? first;
  const current = mount === undefined ? endpoint : undefined;
  const title = mount?.path ?? current?.name;
  const visited = useRef(new Set<string>());
  visited.current.add(current?.name ?? "");
  useEffect(() => {
    if (isPage) {
      document.title = [title, service].filter(Boolean).join(" · ");
    }
  }, [isPage, title, service]);
  // Hidden endpoints have no effects, and their calls go on: they end with the page.
  const leaving = useRef<AbortSignal>(undefined);
  useEffect(() => {
    const page = new AbortController();
    leaving.current = page.signal;
    return () => page.abort();
  }, []);
  const Main = isPage ? "main" : "div";
  return (
    <>
      <div className="playground-side">
        {(endpoints.length > 0 || mounts.length === 0) && (
          <EndpointList endpoints={endpoints} current={current} />
        )}
        {mounts.length > 0 && <MountList mounts={mounts} current={mount} />}
        <RecentTasks target={target.name} hash={place} />
      </div>
      <Main {...(isPage && { id: "main", tabIndex: -1 })} className="playground-main">
        {title === undefined && <p className="secondary">This service has no endpoints.</p>}
        {mount && (
          <MountView
            key={mount.path}
            target={target}
            mount={mount}
            document={docs}
            heading={isPage ? "h1" : "h2"}
          />
        )}
        {endpoints
          .filter(({ name }) => visited.current.has(name))
          .map((endpoint) => (
            // What was entered stays; a task that is not seen is not followed.
            <Activity key={endpoint.name} mode={endpoint === current ? "visible" : "hidden"}>
              <EndpointView
                target={target}
                endpoint={endpoint}
                taskId={endpoint.isTask && endpoint.name === wanted ? taskId : undefined}
                leaving={leaving}
                heading={isPage ? "h1" : "h2"}
              />
            </Activity>
          ))}
      </Main>
    </>
  );
}

/** The part of the address that names a place of the playground; others, as of links to skip, name none. */
function usePlace(hash: string): string {
  const last = useRef("");
  if (hash === "" || hash.startsWith("#/")) {
    last.current = hash;
  }
  return last.current;
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    // Typed by hand: taken as it is.
    return part;
  }
}

interface EndpointListProps {
  readonly endpoints: readonly PlaygroundEndpoint[];
  readonly current: PlaygroundEndpoint | undefined;
}

function EndpointList({ endpoints, current }: EndpointListProps) {
  const heading = useId();
  const list = useRef<HTMLUListElement>(null);
  const { shown, field } = useFinder(endpoints, {
    noun: "endpoints",
    nameOf: ({ name }) => name,
  });
  const name = current?.name;
  useEffect(() => {
    if (name !== undefined) {
      // The address may name one that is far down the list.
      const all = list.current;
      const item = all?.querySelector<HTMLElement>('li:has([aria-current="page"])');
      if (all && item && !isInView(item, all)) {
        all.scrollTo({
          top: item.offsetTop - all.clientHeight / 2,
          left: item.offsetLeft - all.clientWidth / 2,
        });
      }
    }
  }, [name]);
  return (
    <nav aria-labelledby={heading}>
      <h2 id={heading}>Endpoints</h2>
      {field}
      <ul ref={list}>
        {shown.map((endpoint) => (
          <li key={endpoint.name}>
            <a
              href={hashOf(endpoint.name)}
              title={endpoint.description || undefined}
              aria-current={endpoint === current ? "page" : undefined}
            >
              <bdi>{endpoint.name}</bdi>
              <KindBadge endpoint={endpoint} />
            </a>
          </li>
        ))}
      </ul>
    </nav>
  );
}

function isInView(item: HTMLElement, list: HTMLElement): boolean {
  const [inner, outer] = [item.getBoundingClientRect(), list.getBoundingClientRect()];
  return (
    inner.top >= outer.top &&
    inner.bottom <= outer.bottom &&
    inner.left >= outer.left &&
    inner.right <= outer.right
  );
}

interface MountListProps {
  readonly mounts: readonly PlaygroundMount[];
  readonly current: PlaygroundMount | undefined;
}

function MountList({ mounts, current }: MountListProps) {
  const heading = useId();
  return (
    <nav aria-labelledby={heading}>
      <h2 id={heading}>Servers</h2>
      <ul>
        {mounts.map((mount) => (
          <li key={mount.path}>
            <a href={hashOf(mount.path)} aria-current={mount === current ? "page" : undefined}>
              <bdi>{mount.path}</bdi>
              <span className="endpoint-kind">server</span>
            </a>
          </li>
        ))}
      </ul>
    </nav>
  );
}

/** A mounted server: its own page, and its operations, each with its request for a shell. */
interface MountViewProps {
  readonly target: PlaygroundTarget;
  readonly mount: PlaygroundMount;
  /** The document that references in schemas point into. */
  readonly document: object;
  /** Of the page, or of a part of it. */
  readonly heading: "h1" | "h2";
}

function MountView({ target, mount, document, heading: Heading }: MountViewProps) {
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
