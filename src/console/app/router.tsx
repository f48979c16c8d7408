/** The routes of the console. Each page is a chunk of its own, loaded when it is opened. */
import type { QueryClient } from "@tanstack/react-query";
import {
  createRootRouteWithContext,
  createRoute,
  createRouter,
  lazyRouteComponent,
  Outlet,
  redirect,
} from "@tanstack/react-router";
import { isSignedOut } from "./api/errors.ts";
import { me, preferredOrganization, rememberOrganization } from "./api/session.ts";
import { readRange } from "./pages/metrics/range.ts";
import { readSearch } from "./pages/tasks/search.ts";
import { NoOrganization } from "./shell/no-organization.tsx";
import { Shell } from "./shell/shell.tsx";
import { Failure, Missing } from "./ui/failure.tsx";
import { Loading } from "./ui/loading.tsx";

interface Context {
  readonly queryClient: QueryClient;
}

const root = createRootRouteWithContext<Context>()({ component: Outlet });

/** Everything below it needs a person: others are sent to the sign-in, and return from it. */
const signedIn = createRoute({
  getParentRoute: () => root,
  id: "signed-in",
  beforeLoad: async ({ context, location }) => {
    try {
      return { person: await context.queryClient.ensureQueryData(me) };
    } catch (err) {
      if (isSignedOut(err)) {
        const next = `${location.pathname}${location.searchStr}${location.hash}`;
        window.location.replace(`/sign-in?${new URLSearchParams({ next })}`);
        return new Promise<never>(() => {}); // Until the other document is there.
      }
      throw err;
    }
  },
});

const home = createRoute({
  getParentRoute: () => signedIn,
  path: "/",
  beforeLoad: ({ context: { person } }) => {
    const organization = preferredOrganization(person.organizations ?? []);
    if (organization !== undefined) {
      throw redirect({ to: "/o/$organization", params: { organization }, replace: true });
    }
  },
  component: NoOrganization,
});

const organization = createRoute({
  getParentRoute: () => signedIn,
  path: "/o/$organization",
  beforeLoad: ({ params }) => rememberOrganization(params.organization),
  component: Shell,
});

const page = <Path extends string>(path: Path, component: ReturnType<typeof lazyRouteComponent>) =>
  createRoute({ getParentRoute: () => organization, path, component });

const overview = page(
  "/",
  lazyRouteComponent(() => import("./pages/overview/overview.tsx"), "Overview"),
);
const deploymentList = page(
  "/deployments",
  lazyRouteComponent(() => import("./pages/deployments/deployments.tsx"), "Deployments"),
);
const deployment = createRoute({
  getParentRoute: () => organization,
  path: "/deployments/$deployment",
});
const deploymentOverview = createRoute({
  getParentRoute: () => deployment,
  path: "/",
  component: lazyRouteComponent(
    () => import("./pages/deployments/overview.tsx"),
    "DeploymentOverview",
  ),
});
const deploymentTasks = createRoute({
  getParentRoute: () => deployment,
  path: "/tasks",
  validateSearch: readSearch,
  component: lazyRouteComponent(() => import("./pages/deployments/tasks.tsx"), "DeploymentTasks"),
});
const task = createRoute({
  getParentRoute: () => deployment,
  path: "/tasks/$task",
  component: lazyRouteComponent(() => import("./pages/tasks/task.tsx"), "Task"),
});
const deploymentPlayground = createRoute({
  getParentRoute: () => deployment,
  path: "/playground",
  component: lazyRouteComponent(() => import("./pages/deployments/playground.tsx"), "Playground"),
});
const revisionList = createRoute({
  getParentRoute: () => deployment,
  path: "/revisions",
  component: lazyRouteComponent(() => import("./pages/deployments/revisions.tsx"), "Revisions"),
});
const deploymentMetrics = createRoute({
  getParentRoute: () => deployment,
  path: "/metrics",
  validateSearch: readRange,
  component: lazyRouteComponent(
    () => import("./pages/metrics/deployment-metrics.tsx"),
    "DeploymentMetrics",
  ),
});
const deploymentLog = createRoute({
  getParentRoute: () => deployment,
  path: "/log",
  component: lazyRouteComponent(() => import("./pages/deployments/log.tsx"), "Log"),
});
const taskList = createRoute({
  getParentRoute: () => organization,
  path: "/tasks",
  validateSearch: readSearch,
  component: lazyRouteComponent(() => import("./pages/tasks/tasks.tsx"), "Tasks"),
});
const memberList = page(
  "/members",
  lazyRouteComponent(() => import("./pages/organization/members.tsx"), "Members"),
);
const auditLog = page(
  "/audit",
  lazyRouteComponent(() => import("./pages/organization/audit.tsx"), "Audit"),
);
const tokenList = page(
  "/tokens",
  lazyRouteComponent(() => import("./pages/tokens/tokens.tsx"), "Tokens"),
);

const routeTree = root.addChildren([
  signedIn.addChildren([
    home,
    organization.addChildren([
      overview,
      deploymentList,
      deployment.addChildren([
        deploymentOverview,
        deploymentTasks,
        task,
        deploymentPlayground,
        revisionList,
        deploymentMetrics,
        deploymentLog,
      ]),
      taskList,
      tokenList,
      memberList,
      auditLog,
    ]),
  ]),
]);

export function createConsoleRouter(queryClient: QueryClient) {
  return createRouter({
    routeTree,
    context: { queryClient },
    defaultPreload: "intent",
    defaultPendingComponent: Loading,
    defaultErrorComponent: Failure,
    defaultNotFoundComponent: Missing,
    scrollRestoration: true,
  });
}

declare module "@tanstack/react-router" {
  interface Register {
    router: ReturnType<typeof createConsoleRouter>;
  }
}
