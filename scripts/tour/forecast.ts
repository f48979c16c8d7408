/**
 * What the moving picture of the README and the pictures of the console deploy: its task fails once,
 * and succeeds when it is tried again; of a city without a station it fails.
 */
import { service, task } from "tessera-platform";
import * as z from "zod";

const input = z.object({ city: z.string(), days: z.int().min(1).max(14).default(7) });
const output = z.array(z.object({ day: z.int(), celsius: z.number() }));

/** Its station is late now and then. */
function readings(city: string, attempt: number): number {
  if (city === "Atlantis") {
    throw new Error(`there is no station in ${city}: the nearest is in Lisbon`);
  }
  if (attempt === 1) {
    throw new Error(`the station of ${city} sent no readings yet`);
  }
  return 9;
}

export default service({
  name: "forecast",
  endpoints: {
    predict: task(
      { input, output, retries: { max: 3, backoff: "2s" } },
      async ({ city, days }, ctx) => {
        console.log(`reading the station of ${city}`);
        const celsius = [];
        for (let day = 1; day <= days; day += 1) {
          await new Promise((resolve) => setTimeout(resolve, 250));
          ctx.progress(day / days, `day ${day} of ${days}`);
          celsius.push({ day, celsius: (day === 3 ? readings(city, ctx.attempt) : 8) + (day % 4) });
        }
        console.log("done");
        return celsius;
      },
    ),
  },
});
