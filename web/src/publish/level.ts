/** The level of an audio track, several times a second. */

export const SILENCE_DB = -60;
/** From here on peaks are about to be cut off. */
export const LOUD_DB = -3;

/** The peak of samples between -1 and 1, in decibels below full scale. Pure. */
export function peakDb(samples: Float32Array): number {
  let peak = 0;
  for (const sample of samples) peak = Math.max(peak, Math.abs(sample));
  return peak === 0 ? SILENCE_DB : Math.max(SILENCE_DB, Math.min(0, 20 * Math.log10(peak)));
}

export class Level {
  private readonly analyser: AnalyserNode;
  private readonly node: MediaStreamAudioSourceNode;
  private readonly samples = new Float32Array(2048);

  constructor(context: AudioContext, track: MediaStreamTrack) {
    this.analyser = new AnalyserNode(context, { fftSize: this.samples.length });
    this.node = context.createMediaStreamSource(new MediaStream([track]));
    this.node.connect(this.analyser);
  }

  read(): number {
    this.analyser.getFloatTimeDomainData(this.samples);
    return peakDb(this.samples);
  }

  close(): void {
    this.node.disconnect();
  }
}
