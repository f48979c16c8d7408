/** The page of a deployment on its own host: the console's playground, and nothing else of it. */
import { QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { createQueryClient } from "./api/query-client.ts";
import { ServicePage } from "./pages/playground/service-page.tsx";
import { applyTheme } from "./shell/theme.ts";
import "./styles/tokens.css";
import "./styles/base.css";

applyTheme();

createRoot(document.getElementById("root") as HTMLElement).render(
  <StrictMode>
    <QueryClientProvider client={createQueryClient()}>
      <ServicePage />
    </QueryClientProvider>
  </StrictMode>,
);
