/** The frame of an organization's pages: navigation, the page, and what is announced. */
import { useSuspenseQuery } from "@tanstack/react-query";
import { lazyRouteComponent, Outlet, useLocation } from "@tanstack/react-router";
import { Suspense, useEffect, useState } from "react";
import { loaded } from "../api/loaded.ts";
import { me, useOrganization } from "../api/session.ts";
import { Missing } from "../ui/failure.tsx";
import { LoadingPage } from "../ui/loading.tsx";
import { TypedAhead } from "../ui/typed-ahead.ts";
import { useShortcut } from "./keys.ts";
import { Navigation } from "./navigation.tsx";
import "./shell.css";

const Palette = lazyRouteComponent(() => loaded(import("./palette.tsx")));
const Keys = lazyRouteComponent(() => loaded(import("./keys-dialog.tsx")));

/** How often a page that is looked at asks whether its session has not ended. */
const SESSION_CHECK_INTERVAL_MS = 120_000;

export function Shell() {
  // Streams go on for a while when the session has ended; this leads to the sign-in.
  const { data: person } = useSuspenseQuery({ ...me, refetchInterval: SESSION_CHECK_INTERVAL_MS });
  const name = useOrganization();
  const { pathname } = useLocation();
  const [dialog, setDialog] = useState<"palette" | "keys" | undefined>();
  const [isOpen, setOpen] = useState(false);
  useShortcut("mod+k", () => setDialog("palette"));
  useShortcut("?", () => setDialog("keys"));
  useRowKeys();
  useEffect(() => {
    if (pathname) {
      setOpen(false);
    }
  }, [pathname]);
  const isMember = person.organizations?.some((one) => one.name === name) ?? false;
  return (
    <div className={isOpen ? "shell open" : "shell"}>
      <a className="skip" href="#main">
        Skip to the page
      </a>
      <Navigation
        isOpen={isOpen}
        onToggle={() => setOpen(!isOpen)}
        onSearch={() => setDialog("palette")}
      />
      <main id="main" tabIndex={-1}>
        <Suspense fallback={<LoadingPage />}>{isMember ? <Outlet /> : <Missing />}</Suspense>
      </main>
      <Suspense fallback={<TypedAhead />}>
        {dialog === "palette" && <Palette onClose={() => setDialog(undefined)} />}
        {dialog === "keys" && <Keys onClose={() => setDialog(undefined)} />}
      </Suspense>
    </div>
  );
}

// The keys of all tables: `j` and `k` go from row to row, Enter opens what the row is about, `x`
// selects it where rows can be selected, Escape closes an open row, and else leaves the table. A row
// takes part by `data-row` and a `tabIndex` of -1; what it opens is its first link or button.

const ROW = "tr[data-row]";

/** The row that has the focus in it, or in what it shows below it. */
const rowInFocus = (): HTMLElement | undefined => {
  const at = document.activeElement;
  const details = at?.closest(".row-details")?.previousElementSibling;
  return (details ?? at)?.closest<HTMLElement>(ROW) ?? undefined;
};

/** Goes some rows on, from the first or the last one where none has the focus. */
function step(by: 1 | -1): void {
  const rows = [...document.querySelectorAll<HTMLElement>(`main ${ROW}`)];
  const row = rowInFocus();
  const next = row === undefined ? rows.find(isInView) : rows[rows.indexOf(row) + by];
  if (next !== undefined) {
    next.focus({ preventScroll: true });
    next.scrollIntoView({ block: "nearest" });
  }
}

const isInView = (row: HTMLElement): boolean => row.getBoundingClientRect().top >= 0;

/** Enter and Escape have other meanings elsewhere: they are for the row that has the focus itself. */
function onKeyDown({ key, target }: KeyboardEvent): void {
  if (!(target instanceof HTMLElement && target.matches(ROW))) {
    return;
  }
  if (key === "Enter") {
    target.querySelector<HTMLElement>("th :is(a, button), :is(a, button)")?.click();
  } else if (key === "Escape") {
    const opened = target.querySelector<HTMLElement>('.row-open[aria-expanded="true"]');
    opened === null ? target.blur() : opened.click();
  }
}

/** Handles the keys of all tables of the page. */
function useRowKeys(): void {
  useShortcut("j", () => step(1));
  useShortcut("k", () => step(-1));
  useShortcut("x", () =>
    rowInFocus()?.querySelector<HTMLElement>('input[type="checkbox"]')?.click(),
  );
  useEffect(() => {
    addEventListener("keydown", onKeyDown);
    return () => removeEventListener("keydown", onKeyDown);
  }, []);
}
