/** The log of a deployment, live: what it is searched by, how much there was of it, and its lines. */
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { type KeyboardEvent, useDeferredValue, useEffect, useMemo, useRef, useState } from "react";
import type { DeploymentEndpointJson } from "../../../../../gen/tessera/v1/deployment_pb.js";
import { useOrganization } from "../../api/session.ts";
import type { StreamState } from "../../api/use-stream.ts";
import { useShortcut } from "../../shell/keys.ts";
import { Button } from "../../ui/button.tsx";
import { Command } from "../../ui/command.tsx";
import { counted } from "../../ui/counted.ts";
import { chosenByLink, chosenFilter, Filters } from "../../ui/filters.tsx";
import { DOWNLOAD } from "../../ui/icon.tsx";
import { Menu } from "../../ui/menu.tsx";
import { RangePicker } from "../../ui/range-picker.tsx";
import { save } from "../../ui/save.ts";
import { Segments } from "../../ui/segments.tsx";
import { Status } from "../../ui/status.tsx";
import {
  boundsIn,
  RANGES,
  rangeText,
  rangeWords,
  secondText,
  type TimeBounds,
  tickText,
} from "../../ui/time-range.ts";
import { useNow } from "../../ui/use-now.ts";
import { useTyped } from "../../ui/use-typed.ts";
import { DeploymentFrame, useDeploymentName } from "./frame.tsx";
import { type Bar, barsOf, filtered, jsonLinesOf, type ShownLine, textOf } from "./log-lines.ts";
import { LogList } from "./log-list.tsx";
import { LEVELS, type LogSearch, levelsIn, readLogSearch } from "./log-search.ts";
import { type LogName, useLogLines } from "./use-log-lines.ts";
import "./log.css";

/** How often a range that ends now is moved on. */
const MOVE_MS = 5_000;

/** What is shown, and the levels that this leaves. */
const CHOICES = { "All levels": "", Warnings: "error,warn", Errors: "error" } as const;
type Level = keyof typeof CHOICES;

const EARLIER_WORDS = {
  reading: " so far",
  read: "",
  failed: ". Earlier ones could not be read: load the page again",
} as const;

const DOWNLOADS = [
  ["Download as text", ".log", "text/plain", textOf],
  ["Download as JSON lines", ".jsonl", "application/jsonl", jsonLinesOf],
] as const;

const whole = new Intl.NumberFormat("en");

const route = getRouteApi("/signed-in/o/$organization/deployments/$deployment/log");

export function Log() {
  const organization = useOrganization();
  const deployment = useDeploymentName();
  return (
    <DeploymentFrame title="Log" hasStream>
      {({ endpoints = [] }) => (
        <LogView key={deployment} name={{ organization, deployment }} endpoints={endpoints} />
      )}
    </DeploymentFrame>
  );
}

interface LogViewProps {
  readonly name: LogName;
  readonly endpoints: readonly DeploymentEndpointJson[];
}

function LogView({ name, endpoints }: LogViewProps) {
  const search: LogSearch = route.useSearch();
  const navigate = useNavigate();
  const go = (to: LogSearch, replace = false) =>
    void navigate({ to: ".", search: readLogSearch({ ...to }), replace, resetScroll: false });
  const { lines: all, state, earlier, isEmpty } = useLogLines(name);
  const [typed, setTyped] = useTyped(search.search ?? "", (text) =>
    go({ ...search, search: text }, true),
  );
  const text = useDeferredValue(typed);
  const task = search.task ?? "";
  const levels = useMemo(() => levelsIn(search.level ?? ""), [search.level]);
  const level: Level =
    levels.length === 0 ? "All levels" : levels.includes("warn") ? "Warnings" : "Errors";
  const nowMs = useNow(MOVE_MS);
  const { fromMs, toMs } = rangeAt(search, nowMs);
  const { lines, counts } = useMemo(
    () => filtered(all, { search: text, task, levels, range: { fromMs, toMs } }),
    [all, text, task, levels, fromMs, toMs],
  );
  const kinds = useMemo(
    () => new Map(endpoints.map(({ name: one = "", kind }) => [one, kind])),
    [endpoints],
  );
  const [isFollowing, setFollowing] = useState(true);
  /** The newest line when the log was last followed. */
  const seen = useRef(0);
  if (isFollowing) {
    seen.current = all.at(-1)?.sequence ?? 0;
  }
  const newest = isFollowing ? 0 : countAfter(lines, seen.current);
  const isFiltered = text !== "" || task !== "" || levels.length > 0 || fromMs !== undefined;
  const hasLines = all.length > 0;
  useShortcut("f", () => setFollowing(!isFollowing));
  useShortcut("Escape", () => isFiltered && go({}));
  return (
    <section className="log-page" aria-label="Log">
      <Filters
        className="log-tools"
        first={<LogSearchField value={typed} onType={setTyped} />}
        chosen={[
          ...chosenFilter(CHOICES[level] && level, () => go({ ...search, level: "" })),
          ...chosenFilter(rangeWords(search, nowMs), () => {
            const { range, from, to, ...rest } = search;
            go(rest);
          }),
          ...chosenByLink(task && `Task ${task.slice(-6)}`, () => go({ ...search, task: "" })),
        ]}
        actions={
          <>
            <Menu
              id="log-download"
              label="Download"
              isWorded
              icon={DOWNLOAD}
              items={DOWNLOADS.map(([label, ending, type, write]) => ({
                label,
                run: () => save(write(lines), `${name.deployment}${ending}`, type),
              }))}
            />
            {toMs === undefined ? (
              <Button
                kind="quiet"
                disabled={state.kind === "connecting"}
                onClick={() => setFollowing(!isFollowing)}
              >
                {isFollowing ? "Pause" : "Follow"} <kbd>f</kbd>
              </Button>
            ) : (
              <Button
                kind="quiet"
                onClick={() => {
                  setFollowing(true);
                  const { from, to, ...rest } = search;
                  go(rest);
                }}
              >
                Back to now
              </Button>
            )}
          </>
        }
      >
        <Segments
          label="Least level"
          choices={Object.keys(CHOICES) as Level[]}
          value={level}
          onChange={(choice) => go({ ...search, level: CHOICES[choice] })}
        />
        <RangePicker search={search} standard="all" />
      </Filters>
      {hasLines && (
        <LogHistogram
          lines={lines}
          bounds={{
            fromMs: fromMs ?? all[0]?.timeMs ?? nowMs - 60_000,
            toMs: toMs ?? Math.max(nowMs, (all.at(-1)?.timeMs ?? 0) + 1),
          }}
          onChoose={(bounds) => {
            setFollowing(false);
            go({ ...search, from: bounds.fromMs, to: bounds.toMs });
          }}
        />
      )}
      <div className="log-state">
        {hasLines && (
          <span className="secondary">
            {isFiltered && `${whole.format(lines.length)} of `}
            {whole.format(all.length)} {all.length === 1 ? "line" : "lines"}
            {counts.error > 0 && `, ${counted(counts.error, "error")}`}
            {counts.warn > 0 && `, ${counted(counts.warn, "warning")}`}
            {EARLIER_WORDS[earlier]}
          </span>
        )}
        <Following state={state} isPaused={!isFollowing || toMs !== undefined} />
      </div>
      <div className="log-box">
        {!(hasLines || isEmpty) ? (
          <LogSkeleton />
        ) : (
          <LogList
            name={name}
            kinds={kinds}
            lines={lines}
            search={text}
            isWhole={!isFiltered}
            isFollowing={isFollowing}
            onFollow={setFollowing}
            onNarrow={(wanted) => go(wanted === "" ? {} : { task: wanted })}
            empty={hasLines ? <p className="secondary">No lines match.</p> : <NoLines />}
          />
        )}
        {newest > 0 && (
          <Button kind="primary" className="log-new" onClick={() => setFollowing(true)}>
            {counted(newest, "new line")} <span aria-hidden="true">↓</span>
          </Button>
        )}
      </div>
    </section>
  );
}

/** In the place of lines until some have come, or it is known that there are none. */
const LogSkeleton = () => (
  <div className="log-list log-skeleton" aria-hidden="true">
    {Array.from({ length: 12 }, (_, index) => (
      // biome-ignore lint/suspicious/noArrayIndexKey: they never change
      <i key={index} />
    ))}
  </div>
);

/** How the first lines come. */
const NoLines = () => (
  <>
    <p>
      <strong>No lines yet.</strong> What the service prints appears here, and what happens to its
      workers. In a function:
    </p>
    <Command text='ctx.log.info("Hello from the service");' />
    <Command text='print("Hello from the service")' />
  </>
);

/** What is shown of the log now: all without a range. */
function rangeAt(search: LogSearch, nowMs: number): Partial<TimeBounds> {
  return (
    boundsIn(search) ??
    (search.range === undefined ? {} : { fromMs: nowMs - RANGES[search.range][1] * 1_000 })
  );
}

function countAfter(lines: readonly ShownLine[], sequence: number): number {
  const at = lines.findLastIndex((line) => line.sequence <= sequence);
  return lines.length - 1 - at;
}

interface LogSearchFieldProps {
  readonly value: string;
  onType(text: string): void;
}

function LogSearchField({ value, onType }: LogSearchFieldProps) {
  const input = useRef<HTMLInputElement>(null);
  useShortcut("/", () => input.current?.select());
  return (
    <div className="log-search">
      <input
        ref={input}
        type="search"
        aria-label="Search"
        placeholder="Search"
        maxLength={200}
        value={value}
        onChange={({ target }) => onType(target.value)}
        onKeyDown={({ key, currentTarget }) => {
          if (key === "Escape") {
            onType("");
            currentTarget.blur();
          }
        }}
      />
      {value === "" && <kbd>/</kbd>}
    </div>
  );
}

interface FollowingProps {
  readonly state: StreamState;
  readonly isPaused: boolean;
}

/** Whether new lines come, in a word. */
function Following({ state, isPaused }: FollowingProps) {
  return (
    <p role="status" className="log-follow">
      {state.kind === "failed" ? (
        <Status tone="bad">{state.message}</Status>
      ) : state.kind !== "live" ? (
        <Status tone={state.kind === "reconnecting" ? "warning" : "idle"}>{state.kind}</Status>
      ) : (
        <Status tone={isPaused ? "idle" : "good"}>{isPaused ? "paused" : "live"}</Status>
      )}
    </p>
  );
}

// How many lines there were over the shown time, by level. A bar, or bars that are drawn over, narrow it.

/** Ticks of a shorter range have seconds. */
const SECONDS_BELOW_MS = 600_000;

/** Room of a bar. */
const BAR_PX = 10;

interface LogHistogramProps {
  readonly lines: readonly ShownLine[];
  readonly bounds: TimeBounds;
  onChoose(bounds: TimeBounds): void;
}

function LogHistogram({ lines, bounds, onChoose }: LogHistogramProps) {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  /** The bars between which the pointer is drawn. */
  const [drawn, setDrawn] = useState<readonly [from: number, to: number]>();
  /** The bar that the keys are at. */
  const [at, setAt] = useState<number>();
  useEffect(() => {
    const resizing = new ResizeObserver(([entry]) => setWidth(entry?.contentRect.width ?? 0));
    if (box.current) {
      resizing.observe(box.current);
    }
    return () => resizing.disconnect();
  }, []);
  const { fromMs, toMs } = bounds;
  const bars = useMemo(
    () => barsOf(lines, { fromMs, toMs }, Math.max(12, Math.floor(width / BAR_PX))),
    [lines, fromMs, toMs, width],
  );
  const most = Math.max(1, ...bars.map(({ counts }) => totalOf(counts)));
  const choose = (one: number, other: number): void => {
    const [first, last] = [bars[Math.min(one, other)], bars[Math.max(one, other)]];
    if (first !== undefined && last !== undefined) {
      onChoose({ fromMs: first.fromMs, toMs: last.toMs });
    }
    setDrawn(undefined);
  };
  const focused = Math.min(at ?? bars.length - 1, bars.length - 1);
  const move = ({ key }: KeyboardEvent): void => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[key];
    const next = step === undefined ? undefined : bars[focused + step] && focused + step;
    if (next !== undefined) {
      setAt(next);
      box.current?.querySelectorAll("button")[next]?.focus();
    }
  };
  const isDrawn = (index: number) =>
    drawn !== undefined && index >= Math.min(...drawn) && index <= Math.max(...drawn);
  return (
    <div className="log-histogram">
      {/* biome-ignore lint/a11y/useSemanticElements: a fieldset belongs to a form */}
      <div
        ref={box}
        className="log-bars"
        role="group"
        aria-label="Lines over time"
        onKeyDown={move}
        onPointerLeave={() => setDrawn(undefined)}
      >
        {width > 0 &&
          bars.map((bar, index) => (
            <button
              key={bar.fromMs}
              type="button"
              className={isDrawn(index) ? "drawn" : ""}
              tabIndex={index === focused ? 0 : -1}
              aria-label={wordsOf(bar)}
              title={wordsOf(bar)}
              onPointerDown={({ currentTarget, pointerId }) => {
                // A finger would hold on to the bar on which it began.
                if (currentTarget.hasPointerCapture(pointerId)) {
                  currentTarget.releasePointerCapture(pointerId);
                }
                setDrawn([index, index]);
              }}
              onPointerEnter={() => setDrawn((before) => before && [before[0], index])}
              onPointerUp={() => drawn !== undefined && choose(drawn[0], index)}
              // A click of the pointer was chosen by its end already.
              onClick={({ detail }) => detail === 0 && choose(index, index)}
            >
              {LEVELS.toReversed().map((level) => (
                <span
                  key={level}
                  className={level}
                  style={{ height: `${(bar.counts[level] / most) * 100}%` }}
                />
              ))}
            </button>
          ))}
      </div>
      <p className="log-ticks secondary" aria-hidden="true">
        {ticksOf(bars, width).map((ms) => (
          <span key={ms}>{(toMs - fromMs < SECONDS_BELOW_MS ? secondText : tickText)(ms)}</span>
        ))}
      </p>
    </div>
  );
}

const totalOf = (counts: Bar["counts"]): number => counts.error + counts.warn + counts.info;

function wordsOf(bar: Bar): string {
  const { error, warn } = bar.counts;
  return [
    rangeText(bar, Date.now()),
    counted(totalOf(bar.counts), "line"),
    ...(error > 0 ? [counted(error, "error")] : []),
    ...(warn > 0 ? [counted(warn, "warning")] : []),
  ].join(", ");
}

/** The times below the bars: at both ends, and between where there is room. */
function ticksOf(bars: readonly Bar[], width: number): readonly number[] {
  const [first, last] = [bars[0], bars.at(-1)];
  if (first === undefined || last === undefined || bars.length < 2) {
    return [];
  }
  const parts = width > 900 ? 4 : width > 500 ? 2 : 1;
  const lengthMs = last.toMs - first.fromMs;
  return Array.from({ length: parts + 1 }, (_, index) => first.fromMs + (lengthMs * index) / parts);
}
