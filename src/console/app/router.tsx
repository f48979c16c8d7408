/** The routes of the console. Each page is a chunk of its own, loaded when it is opened. */
import type { QueryClient } from "@tanstack/react-query";
import {
  createRootRouteWithContext,
  createRoute,
  createRouter,
  lazyRouteComponent,
  Outlet,
  parseSearchWith,
  redirect,
  stringifySearchWith,
} from "@tanstack/react-router";
import { isSignedOut } from "./api/errors.ts";
import { loaded } from "./api/loaded.ts";
import { me, preferredOrganization, rememberOrganization } from "./api/session.ts";
import { readComparison } from "./pages/deployments/comparison-search.ts";
import { readLogSearch } from "./pages/deployments/log-search.ts";
import { readMetricsSearch } from "./pages/metrics/metrics-search.ts";
import { readAuditSearch } from "./pages/organization/audit-search.ts";
import { hideCode } from "./pages/people/secret.ts";
import { readReferenceSearch } from "./pages/reference/reference-search.ts";
import { rememberList } from "./pages/tasks/last-list.ts";
import { readSearch } from "./pages/tasks/search.ts";
import { readUsageSearch } from "./pages/usage/usage-search.ts";
import { Failure, Missing } from "./ui/failure.tsx";
import { Loading } from "./ui/loading.tsx";
import { readOpen } from "./ui/open-search.ts";

interface Context {
  readonly queryClient: QueryClient;
}

const root = createRootRouteWithContext<Context>()({ component: Outlet });

interface SignInSearch {
  /** The path to open after it. */
  readonly next?: string;
  /** Why the provider's answer was of no use. */
  readonly refused?: string;
}

/** Everything below it needs a person: others are sent to the sign-in, and return from it. */
const signedIn = createRoute({
  getParentRoute: () => root,
  id: "signed-in",
  beforeLoad: async ({ context, location }) => {
    try {
      return { person: await context.queryClient.ensureQueryData(me) };
    } catch (err) {
      if (isSignedOut(err)) {
        throw redirect({ to: "/sign-in", search: { next: location.href }, replace: true });
      }
      throw err;
    }
  },
});

const signIn = createRoute({
  getParentRoute: () => root,
  path: "/sign-in",
  validateSearch: ({ next, refused }: Record<string, unknown>): SignInSearch => ({
    ...(typeof next === "string" && { next }),
    ...(refused !== undefined && { refused: String(refused) }),
  }),
  component: lazyRouteComponent(() => loaded(import("./pages/people/sign-in.tsx")), "SignIn"),
});
const setUp = createRoute({
  getParentRoute: () => root,
  path: "/setup",
  beforeLoad: hideCode,
  component: lazyRouteComponent(() => loaded(import("./pages/people/set-up.tsx")), "SetUp"),
});
const invitation = createRoute({
  getParentRoute: () => root,
  path: "/invitation",
  beforeLoad: hideCode,
  component: lazyRouteComponent(
    () => loaded(import("./pages/people/invitation.tsx")),
    "Invitation",
  ),
});
const account = createRoute({
  getParentRoute: () => signedIn,
  path: "/account",
  beforeLoad: ({ context: { person } }) => {
    const organization = preferredOrganization(person.organizations ?? []);
    if (organization !== undefined) {
      throw redirect({ to: "/o/$organization/account", params: { organization }, replace: true });
    }
  },
  component: lazyRouteComponent(() => loaded(import("./pages/people/account.tsx")), "AccountAlone"),
});
const accountSecured = createRoute({
  getParentRoute: () => signedIn,
  path: "/account-secured",
  component: lazyRouteComponent(
    () => loaded(import("./pages/people/account-secured.tsx")),
    "AccountSecured",
  ),
});
const authorize = createRoute({
  getParentRoute: () => signedIn,
  path: "/cli/authorize",
  component: lazyRouteComponent(() => loaded(import("./pages/people/authorize.tsx")), "Authorize"),
});
const device = createRoute({
  getParentRoute: () => signedIn,
  path: "/device",
  component: lazyRouteComponent(() => loaded(import("./pages/people/device.tsx")), "Device"),
});
/** The reference of the API, for anyone; members of an organization see it in the shell. */
const reference = createRoute({
  getParentRoute: () => root,
  path: "/reference",
  validateSearch: readReferenceSearch,
  beforeLoad: async ({ context: { queryClient }, search, location }) => {
    const person = await queryClient.ensureQueryData(me).catch((err: unknown) => {
      if (isSignedOut(err)) {
        return undefined;
      }
      throw err;
    });
    const organization = preferredOrganization(person?.organizations ?? []);
    if (organization !== undefined) {
      throw redirect({
        to: "/o/$organization/reference",
        params: { organization },
        search,
        hash: location.hash,
        replace: true,
      });
    }
    return { person };
  },
  component: lazyRouteComponent(
    () => loaded(import("./pages/reference/reference.tsx")),
    "Reference",
  ),
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
  component: lazyRouteComponent(
    () => loaded(import("./shell/no-organization.tsx")),
    "NoOrganization",
  ),
});

const organization = createRoute({
  getParentRoute: () => signedIn,
  path: "/o/$organization",
  validateSearch: readOpen,
  beforeLoad: ({ params }) => rememberOrganization(params.organization),
  component: lazyRouteComponent(() => loaded(import("./shell/shell.tsx")), "Shell"),
});

const page = <Path extends string>(path: Path, component: ReturnType<typeof lazyRouteComponent>) =>
  createRoute({ getParentRoute: () => organization, path, component });

interface TokenSearch {
  readonly worker?: string;
  readonly create?: true;
}

const overview = page(
  "/",
  lazyRouteComponent(() => loaded(import("./pages/overview/overview.tsx")), "Overview"),
);
const deploymentList = page(
  "/deployments",
  lazyRouteComponent(() => loaded(import("./pages/deployments/deployments.tsx")), "Deployments"),
);
const deployment = createRoute({
  getParentRoute: () => organization,
  path: "/deployments/$deployment",
});
const deploymentOverview = createRoute({
  getParentRoute: () => deployment,
  path: "/",
  component: lazyRouteComponent(
    () => loaded(import("./pages/deployments/overview.tsx")),
    "DeploymentOverview",
  ),
});
const deploymentTasks = createRoute({
  getParentRoute: () => deployment,
  path: "/tasks",
  validateSearch: readSearch,
  onLeave: ({ params, search }) => rememberList({ ...params, search }),
  component: lazyRouteComponent(
    () => loaded(import("./pages/deployments/tasks.tsx")),
    "DeploymentTasks",
  ),
});
const task = createRoute({
  getParentRoute: () => deployment,
  path: "/tasks/$task",
  component: lazyRouteComponent(() => loaded(import("./pages/tasks/task.tsx")), "Task"),
});
const deploymentPlayground = createRoute({
  getParentRoute: () => deployment,
  path: "/playground",
  component: lazyRouteComponent(
    () => loaded(import("./pages/deployments/playground.tsx")),
    "DeploymentPlayground",
  ),
});
const revisionList = createRoute({
  getParentRoute: () => deployment,
  path: "/revisions",
  validateSearch: readComparison,
  component: lazyRouteComponent(
    () => loaded(import("./pages/deployments/revisions.tsx")),
    "Revisions",
  ),
});
const deploymentMetrics = createRoute({
  getParentRoute: () => deployment,
  path: "/metrics",
  validateSearch: readMetricsSearch,
  component: lazyRouteComponent(
    () => loaded(import("./pages/metrics/deployment-metrics.tsx")),
    "DeploymentMetrics",
  ),
});
const deploymentLog = createRoute({
  getParentRoute: () => deployment,
  path: "/log",
  validateSearch: readLogSearch,
  component: lazyRouteComponent(() => loaded(import("./pages/deployments/log.tsx")), "Log"),
});
const deploymentSchedules = createRoute({
  getParentRoute: () => deployment,
  path: "/schedules",
  component: lazyRouteComponent(
    () => loaded(import("./pages/deployments/schedules.tsx")),
    "Schedules",
  ),
});
const deploymentWebhooks = createRoute({
  getParentRoute: () => deployment,
  path: "/webhooks",
  component: lazyRouteComponent(
    () => loaded(import("./pages/deployments/webhooks.tsx")),
    "Webhooks",
  ),
});
const deploymentWebhook = createRoute({
  getParentRoute: () => deployment,
  path: "/webhooks/$webhook",
  component: lazyRouteComponent(
    () => loaded(import("./pages/deployments/webhooks.tsx")),
    "Webhook",
  ),
});
const deploymentSettings = createRoute({
  getParentRoute: () => deployment,
  path: "/settings",
  component: lazyRouteComponent(
    () => loaded(import("./pages/deployments/settings.tsx")),
    "DeploymentSettings",
  ),
});
const taskList = createRoute({
  getParentRoute: () => organization,
  path: "/tasks",
  validateSearch: readSearch,
  onLeave: ({ params, search }) => rememberList({ ...params, search }),
  component: lazyRouteComponent(() => loaded(import("./pages/tasks/tasks.tsx")), "Tasks"),
});
const memberList = page(
  "/members",
  lazyRouteComponent(() => loaded(import("./pages/organization/members.tsx")), "Members"),
);
const auditLog = createRoute({
  getParentRoute: () => organization,
  path: "/audit",
  validateSearch: readAuditSearch,
  component: lazyRouteComponent(() => loaded(import("./pages/organization/audit.tsx")), "Audit"),
});
const operatorPage = page(
  "/operator",
  lazyRouteComponent(() => loaded(import("./pages/operator/operator.tsx")), "Operator"),
);
const modelList = page(
  "/models",
  lazyRouteComponent(() => loaded(import("./pages/models/models.tsx")), "Models"),
);
const alertList = page(
  "/alerts",
  lazyRouteComponent(() => loaded(import("./pages/alerts/alerts.tsx")), "Alerts"),
);
const usagePage = createRoute({
  getParentRoute: () => organization,
  path: "/usage",
  validateSearch: readUsageSearch,
  component: lazyRouteComponent(() => loaded(import("./pages/usage/usage.tsx")), "Usage"),
});
const machineList = page(
  "/machines",
  lazyRouteComponent(() => loaded(import("./pages/machines/machines.tsx")), "Machines"),
);
const tokenList = createRoute({
  getParentRoute: () => organization,
  path: "/tokens",
  /** A token is to be created; with a deployment, one that joins workers to it. */
  validateSearch: ({ worker, create }: Record<string, unknown>): TokenSearch => ({
    ...(typeof worker === "string" && worker !== "" && { worker }),
    ...(create === true && { create }),
  }),
  component: lazyRouteComponent(() => loaded(import("./pages/tokens/tokens.tsx")), "Tokens"),
});

const organizationReference = createRoute({
  getParentRoute: () => organization,
  path: "/reference",
  validateSearch: readReferenceSearch,
  component: lazyRouteComponent(
    () => loaded(import("./pages/reference/reference.tsx")),
    "OrganizationReference",
  ),
});
const accountPage = page(
  "/account",
  lazyRouteComponent(() => loaded(import("./pages/people/account.tsx")), "Account"),
);

const routeTree = root.addChildren([
  signIn,
  setUp,
  invitation,
  reference,
  signedIn.addChildren([
    home,
    account,
    accountSecured,
    authorize,
    device,
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
        deploymentSchedules,
        deploymentWebhooks,
        deploymentWebhook,
        deploymentSettings,
      ]),
      taskList,
      modelList,
      machineList,
      alertList,
      usagePage,
      tokenList,
      memberList,
      auditLog,
      operatorPage,
      accountPage,
      organizationReference,
    ]),
  ]),
]);

/** Only lists that this console wrote are JSON in the address: any other text stays as it is. */
function readList(text: string): unknown {
  const list: unknown = text.startsWith("[") ? JSON.parse(text) : undefined;
  if (JSON.stringify(list) !== text) {
    throw new SyntaxError("not a list");
  }
  return list;
}

export function createConsoleRouter(queryClient: QueryClient) {
  return createRouter({
    routeTree,
    parseSearch: parseSearchWith(readList),
    stringifySearch: stringifySearchWith(JSON.stringify, readList),
    context: { queryClient },
    defaultPreload: "intent",
    defaultPendingComponent: Loading,
    defaultErrorComponent: Failure,
    defaultNotFoundComponent: () => <Missing />,
    scrollRestoration: true,
  });
}

declare module "@tanstack/react-router" {
  interface Register {
    router: ReturnType<typeof createConsoleRouter>;
  }
}
