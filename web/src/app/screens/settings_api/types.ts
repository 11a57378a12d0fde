/** API keys, delivery keys and playback keys, as the API answers them. */
export interface ApiKey {
  id: string;
  name: string;
  scope: string;
  keyPrefix: string;
  createdAt: string;
  lastUsedAt: string | null;
}

export interface DeliveryKey {
  id: string;
  name: string;
  key_prefix: string;
  delivery_alias: string | null;
  presets_only: boolean;
  /** Null for keys made before tokens were derived. */
  token: string | null;
  created_at: string;
  last_used_at: string | null;
}

export interface PlaybackKey {
  id: string;
  name: string;
  createdAt: string;
}
