// What the dashboards are made of, in the words of Grafana's schema package.
import type { Dashboard } from '@grafana/schema/dist/types/raw/dashboard/x/types.gen';
import type * as bargauge from '@grafana/schema/dist/types/raw/composable/bargauge/panelcfg/x/types.gen';
import type * as heatmap from '@grafana/schema/dist/types/raw/composable/heatmap/panelcfg/x/types.gen';
import type * as stat from '@grafana/schema/dist/types/raw/composable/stat/panelcfg/x/types.gen';
import type * as statetimeline from '@grafana/schema/dist/types/raw/composable/statetimeline/panelcfg/x/types.gen';
import type * as statushistory from '@grafana/schema/dist/types/raw/composable/statushistory/panelcfg/x/types.gen';
import type * as table from '@grafana/schema/dist/types/raw/composable/table/panelcfg/x/types.gen';
import type * as timeseries from '@grafana/schema/dist/types/raw/composable/timeseries/panelcfg/x/types.gen';

export interface Wanted {
  board: Dashboard;
  options: {
    bargauge: bargauge.Options;
    heatmap: heatmap.Options;
    stat: stat.Options;
    'state-timeline': statetimeline.Options;
    'status-history': statushistory.Options;
    table: table.Options;
    timeseries: timeseries.Options;
  };
  custom: {
    heatmap: Partial<heatmap.FieldConfig>;
    'state-timeline': Partial<statetimeline.FieldConfig>;
    'status-history': Partial<statushistory.FieldConfig>;
    table: Partial<table.FieldConfig>;
    timeseries: Partial<timeseries.FieldConfig>;
  };
}
