//! Operation `fade`, the example of `CONTRIBUTING.md`: one file and one line of the table. Only tests are built with it
//! (feature `example-operation`).

use serde::{Deserialize, Serialize};

use super::{
    EDIT_QUALITY, OperationInput, effect::Effect, field::Field, params::FieldError, reader::Reader,
    row::Row, values::Values, writable,
};
use crate::{
    format::Class,
    task::{Adjust, Encode, Failure, Render, Task},
};

pub(super) const FADE: Row = Row {
    node: Some("fade"),
    fields: &[Field::integer("amount", 0, 100, Some("50"), "per cent")],
    effects: &[Effect {
        parameter: "fade",
        min: 0,
        max: 100,
        steps: 1,
        summary: "paler colours, per cent",
        apply: fade,
    }],
    ..Row::of_one_file(
        "fade",
        &[Class::Raster, Class::Vector],
        "Makes the colours of an image paler, like those of an old print",
    )
};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fade {
    /// Per cent.
    pub amount: u8,
}

impl Values for Fade {
    fn read(fields: &Reader<'_>) -> Result<Self, FieldError> {
        let amount = fields.integer("amount")?;
        Ok(Self { amount })
    }

    fn task(&self, source: &OperationInput, _: &[OperationInput]) -> Result<Task, Failure> {
        let output = Encode::new(writable(source.format), EDIT_QUALITY);
        let mut render = Render::new(source.format, output);
        fade(&mut render.adjust, f32::from(self.amount));
        Ok(Task::Render(Box::new(render)))
    }
}

fn fade(adjust: &mut Adjust, per_cent: f32) {
    let share = per_cent / 100.0;
    adjust.saturation *= 1.0 - share;
    adjust.contrast *= 1.0 - share / 2.0;
}
