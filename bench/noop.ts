import { api, service, task } from "tessera";

/** The smallest service: what is measured is everything around it. */
export default service({
  name: "noop",
  endpoints: {
    echo: api({}, () => null),
    noop: task({ concurrency: 64 }, () => null),
  },
});
