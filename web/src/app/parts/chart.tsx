/** A line chart over time, drawn by uPlot, which is loaded when the first chart is shown; the same numbers as a table. */
import { useEffect, useRef, useState } from "preact/hooks";
import type uPlot from "uplot";
import { isDark } from "../shell/scheme";
import { Button } from "./button";
import { formatDateTime, formatTime } from "./format";

export interface Series {
  label: string;
  /** One for each time; null: nothing was measured, which is a gap and never zero. */
  values: (number | null)[];
  /** A token of the design: "accent", "good", "live", "warn". */
  tone?: "accent" | "good" | "live" | "warn";
}

interface ChartProps {
  title: string;
  /** Unix seconds, ascending. */
  times: number[];
  series: Series[];
  format: (value: number) => string;
  height?: number;
  /** Bars for sums of days; a line otherwise. */
  bars?: boolean;
  /** The word in gaps. */
  gap?: string;
  /** Counts: the axis has no fractions. */
  whole?: boolean;
}

export function Chart({
  title,
  times,
  series,
  format,
  height = 140,
  bars,
  gap = "offline",
  whole,
}: ChartProps) {
  const [asTable, setTable] = useState(false);
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | undefined>(undefined);
  const shape = series.map((line) => line.label).join();
  const data = [times, ...series.map((line) => line.values)] as uPlot.AlignedData;
  const latest = useRef(data);
  latest.current = data;

  // Drawn again only for another shape; new data is set below
  useEffect(() => {
    const element = place.current;
    if (asTable || !element) return;
    let ended = false;
    let observer: ResizeObserver | undefined;
    import("uplot").then(({ default: Plot }) => {
      if (ended) return;
      const made = new Plot(
        options(Plot, element, { title, series, format, height, bars, gap, whole }),
        latest.current,
        element,
      );
      plot.current = made;
      observer = new ResizeObserver(() =>
        made.setSize({ width: Math.max(120, element.clientWidth), height }),
      );
      observer.observe(element);
    });
    return () => {
      ended = true;
      observer?.disconnect();
      plot.current?.destroy();
      plot.current = undefined;
    };
  }, [asTable, shape, height, bars, isDark.value]);
  useEffect(() => plot.current?.setData(data));

  return (
    <figure class="chart">
      <figcaption>
        <span>{title}</span>
        <Button small look="quiet" aria-pressed={asTable} onClick={() => setTable(!asTable)}>
          {asTable ? "Show as chart" : "Show as table"}
        </Button>
      </figcaption>
      {asTable ? (
        <NumbersTable {...{ title, times, series, format, gap, bars }} />
      ) : (
        <div
          ref={place}
          class="chart-place"
          style={{ height: `${height}px` }}
          role="img"
          aria-label={`${title}: ${summary(series, format, gap)}`}
        />
      )}
    </figure>
  );
}

/** The newest value of each line in words. */
function summary(series: Series[], format: (value: number) => string, gap: string): string {
  return series
    .map((line) => {
      const last = line.values.at(-1);
      return `${line.label} ${last === null || last === undefined ? gap : format(last)}`;
    })
    .join(", ");
}

function NumbersTable({
  title,
  times,
  series,
  format,
  gap,
  bars,
}: Pick<ChartProps, "title" | "times" | "series" | "format" | "bars"> & { gap: string }) {
  const step = Math.max(1, Math.ceil(times.length / 60));
  const shown = times.map((_, i) => i).filter((i) => (times.length - 1 - i) % step === 0);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls is reached by keyboard
    <section class="table-scroll" tabIndex={0} aria-label={title}>
      <table class="table table-dense">
        <thead>
          <tr>
            <th scope="col">Time</th>
            {series.map((line) => (
              <th key={line.label} scope="col">
                {line.label}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {shown.reverse().map((i) => (
            <tr key={times[i]}>
              <th scope="row">{(bars ? formatDateTime : formatTime)(new Date((times[i] ?? 0) * 1_000))}</th>
              {series.map((line) => {
                const value = line.values[i];
                return (
                  <td key={line.label}>{value === null || value === undefined ? gap : format(value)}</td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

const WHOLE_STEPS = [1, 2, 5]
  .flatMap((step) => [0, 1, 2, 3, 4, 5].map((power) => step * 10 ** power))
  .sort((a, b) => a - b);

function options(
  Plot: typeof uPlot,
  element: HTMLElement,
  chart: Omit<ChartProps, "times"> & { height: number; gap: string },
): uPlot.Options {
  const style = getComputedStyle(element);
  const token = (name: string) => style.getPropertyValue(`--${name}`).trim();
  const axis: uPlot.Axis = {
    stroke: token("ink-soft"),
    grid: { stroke: token("line"), width: 1 },
    ticks: { show: false },
    font: `11px ${style.fontFamily}`,
  };
  return {
    width: Math.max(120, element.clientWidth),
    height: chart.height,
    // The last time of the axis is wider than what is after its line.
    padding: [8, 32, 0, 0],
    legend: { show: false },
    cursor: { y: false, points: { size: 6 } },
    scales: { y: { range: (_u, _min, max) => [0, max > 0 ? max * 1.15 : 1] } },
    axes: [
      { ...axis, size: 24, space: 84, values: (_u, seconds) => ticks(seconds, chart.bars) },
      {
        ...axis,
        size: 62,
        ...(chart.whole ? { incrs: WHOLE_STEPS } : {}),
        values: (_u, values) => values.map((value) => (value === 0 ? "0" : chart.format(value))),
      },
    ],
    series: [
      {},
      ...chart.series.map((line): uPlot.Series => {
        const stroke = token(line.tone ?? "accent");
        return {
          label: line.label,
          stroke,
          width: 1.5,
          spanGaps: false,
          points: { show: false },
          fill: `color-mix(in srgb, ${stroke} ${chart.bars ? 70 : 12}%, transparent)`,
          ...(chart.bars && Plot.paths.bars ? { paths: Plot.paths.bars({ size: [0.7, 40] }) } : {}),
        };
      }),
    ],
    hooks: { draw: [(plot) => drawGaps(plot, chart.gap, token("ink-soft"), token("surface-sunk"))] },
  };
}

const clock = new Intl.DateTimeFormat(undefined, { hour: "numeric", minute: "2-digit" });
const clockWithSeconds = new Intl.DateTimeFormat(undefined, {
  hour: "numeric",
  minute: "2-digit",
  second: "2-digit",
});
const day = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });

/** Times of the axis, with seconds where two of them are in one minute. */
function ticks(seconds: number[], bars: boolean | undefined): string[] {
  const isClose = seconds.length > 1 && (seconds[1] ?? 0) - (seconds[0] ?? 0) < 60;
  const format = bars ? day : isClose ? clockWithSeconds : clock;
  return seconds.map((at) => format.format(new Date(at * 1_000)));
}

/** Shades the times for which no line has a value, and names them where the word has room. */
function drawGaps(plot: uPlot, word: string, ink: string, shade: string) {
  const [times, ...lines] = plot.data;
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.textAlign = "center";
  ctx.textBaseline = "middle";
  let begin: number | undefined;
  for (let i = 0; i <= times.length; i++) {
    const isGap = i < times.length && lines.every((line) => line[i] === null || line[i] === undefined);
    if (isGap) begin ??= i;
    else if (begin !== undefined) {
      const left = plot.valToPos(times[Math.max(0, begin - 1)] ?? 0, "x", true);
      const right = plot.valToPos(times[Math.min(i, times.length - 1)] ?? 0, "x", true);
      ctx.fillStyle = shade;
      ctx.fillRect(left, bbox.top, right - left, bbox.height);
      ctx.fillStyle = ink;
      if (right - left > ctx.measureText(word).width + 8)
        ctx.fillText(word, (left + right) / 2, bbox.top + bbox.height / 2);
      begin = undefined;
    }
  }
  ctx.restore();
}
