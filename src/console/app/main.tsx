/** The console: a page for people, which calls the public API with the session of this browser. */
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { isSignedOut, isTransient } from "./api/errors.ts";
import { createConsoleRouter } from "./router.tsx";
import { applyTheme } from "./shell/theme.ts";
import { Toasts } from "./ui/toasts.tsx";
import "./styles/tokens.css";
import "./styles/base.css";

/** How often a call that failed for a moment is repeated before the page says so. */
const MAX_RETRIES = 3;

const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 5_000,
      retry: (failures, err) => failures < MAX_RETRIES && isTransient(err),
      retryDelay: (attempt) => Math.min(250 * 2 ** attempt, 5_000),
    },
  },
});
const router = createConsoleRouter(queryClient);

// A session that ended leads to the sign-in, and back to the same page.
queryClient.getQueryCache().subscribe(({ type, query }) => {
  if (type === "updated" && isSignedOut(query.state.error)) {
    void router.invalidate();
    queryClient.removeQueries({ queryKey: ["me"] });
  }
});

applyTheme();

createRoot(document.getElementById("root") as HTMLElement).render(
  <StrictMode>
    <QueryClientProvider client={queryClient}>
      <Toasts>
        <RouterProvider router={router} />
      </Toasts>
    </QueryClientProvider>
  </StrictMode>,
);
