/** The console: a page for people, which calls the public API with the session of this browser. */
import { type Query, QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { CallError, isSignedOut } from "./api/errors.ts";
import { createQueryClient } from "./api/query-client.ts";
import { me } from "./api/session.ts";
import { createConsoleRouter } from "./router.tsx";
import { applyTheme } from "./shell/theme.ts";
import { Connection } from "./ui/connection.tsx";
import { Toasts } from "./ui/toasts.tsx";
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/skeleton.css";

/**
 * A session that ended leads to the sign-in, and back to the same page. Before a page opens, its
 * route asks who is there, and does so by itself.
 */
function onError(err: unknown, query?: Query<unknown, unknown, unknown>): void {
  const isAsked = query?.queryKey === me.queryKey && query.state.data === undefined;
  const { pathname, href } = router.latestLocation;
  if (isSignedOut(err) && !isAsked && pathname !== "/sign-in") {
    void router
      .navigate({ to: "/sign-in", search: { next: href }, replace: true })
      .then(() => queryClient.removeQueries({ type: "inactive" }));
  }
}

const queryClient = createQueryClient(onError);
const router = createConsoleRouter(queryClient);

applyTheme();

createRoot(document.getElementById("root") as HTMLElement, {
  // Errors of calls are shown by the page that they are for.
  onCaughtError: (err) => !(err instanceof CallError) && reportError(err),
}).render(
  <StrictMode>
    <QueryClientProvider client={queryClient}>
      <Toasts>
        <RouterProvider router={router} />
        <Connection />
      </Toasts>
    </QueryClientProvider>
  </StrictMode>,
);
