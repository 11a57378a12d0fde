/** Shapes of the catalogue, of delivery and of files, as far as the builder reads them. */
export interface CdnParameter {
  name: string;
  aliases: string[];
  type: "string" | "integer" | "number" | "boolean";
  input: "integer" | "number" | "flag" | "choice" | "text" | "colour" | "point" | "quality";
  group: "size" | "format" | "crop" | "turn" | "colour" | "source";
  allowed: string;
  values: string[];
  minimum: number | null;
  maximum: number | null;
  step: number | null;
  /** Means the same as none. */
  default: string | number | boolean | null;
  summary: string;
}

export interface Catalogue {
  cdnParameters: CdnParameter[];
  formats: { name: string; mime: string; aliases: string[] }[];
}

export interface DeliveryKey {
  id: string;
  name: string;
  key_prefix: string;
  delivery_alias: string | null;
  presets_only: boolean;
  /** Null for keys of which only the beginning is known. */
  token: string | null;
}

export interface Preset {
  id: string;
  name: string;
  params: Record<string, unknown>;
  createdAt: string;
  updatedAt: string;
}

export interface StoredFile {
  id: string;
  filename: string;
  mime_type: string;
  size_bytes: number;
  width: number | null;
  height: number | null;
  focal_point: { x: number; y: number } | null;
  description: string | null;
  download_url: string;
  preview_url?: string | null;
  media?: { hasAlpha?: boolean } | null;
}

export interface Sums {
  hits: number;
  misses: number;
  bytes: number;
}

export interface Statistics extends Sums {
  /** The newest first, only days with deliveries. */
  days: (Sums & { date: string })[];
  keys: (Sums & { id: string; name: string; isRevoked: boolean })[];
}
