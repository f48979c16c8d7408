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
import { useRowKeys } from "./row-keys.ts";
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
