//! Program of an MPEG-TS stream that is followed, and changes of its tables (PAT, PMT).

use super::{
    Corruption, Findings, Packet, Pid,
    continuity::{Continuity, Step},
    section::{Section, Sections},
    tables::{self, Program, ProgramMap},
};

/// The program association table and the map of the program that is followed.
#[derive(Debug, Default)]
pub(super) struct Programs {
    association: Table,
    program: Option<Program>,
    map_table: Table,
    map: ProgramMap,
}

/// PID that carries sections.
#[derive(Debug, Default)]
struct Table {
    continuity: Continuity,
    sections: Sections,
    /// Last section: tables are repeated ten times a second, and rarely change.
    known: Vec<u8>,
}

impl Programs {
    pub(super) fn wants(&self, pid: Pid) -> bool {
        pid == Pid::PAT || self.program.is_some_and(|program| program.map == pid)
    }

    /// Takes a packet of a table; the program's map where it is new.
    pub(super) fn push(
        &mut self,
        packet: &Packet<'_>,
        payload: &[u8],
        findings: &mut Findings,
    ) -> Option<&ProgramMap> {
        if packet.pid == Pid::PAT {
            self.push_association(packet, payload, findings);
            return None;
        }
        let program = self.program?;
        let (map_table, map) = (&mut self.map_table, &mut self.map);
        let mut changed = false;
        map_table.push(packet, payload, findings, |section| {
            let read = tables::read_map(section, program.number, map)?;
            if let Some(read) = read.filter(|read| read != map) {
                *map = read;
                changed = true;
            }
            Ok(())
        });
        changed.then_some(&self.map)
    }

    /// Handles packets that were discarded on this side.
    pub(super) fn skipped(&mut self) {
        for table in [&mut self.association, &mut self.map_table] {
            table.continuity.forget();
            table.sections.abandon();
        }
    }

    fn push_association(&mut self, packet: &Packet<'_>, payload: &[u8], findings: &mut Findings) {
        let followed = self.program;
        let mut chosen = followed;
        self.association.push(packet, payload, findings, |section| {
            chosen = tables::choose_program(section, chosen).or(chosen);
            Ok(())
        });
        if chosen != followed {
            self.program = chosen;
            self.map_table = Table::default();
        }
    }
}

impl Table {
    /// Takes a packet, and passes every whole section that differs from the last to `take`.
    fn push(
        &mut self,
        packet: &Packet<'_>,
        payload: &[u8],
        findings: &mut Findings,
        mut take: impl FnMut(&[u8]) -> Result<(), Corruption>,
    ) {
        match self.continuity.step(packet, payload) {
            Step::Next => {}
            Step::Duplicate => return,
            Step::Gap => {
                findings.counters.continuity_errors += 1;
                self.sections.abandon();
            }
        }
        if packet.scrambled {
            return findings.damaged(Corruption::Scrambled);
        }
        let known = &mut self.known;
        self.sections
            .push(packet.starts_unit, payload, |section| match section {
                Section::Damaged => findings.damaged(Corruption::Invalid {
                    what: "table",
                    reason: "its length or its checksum is wrong",
                }),
                Section::Whole(content) if known == content => {}
                Section::Whole(content) => {
                    known.clear();
                    known.extend_from_slice(content);
                    if let Err(corruption) = take(content) {
                        findings.damaged(corruption);
                    }
                }
            });
    }
}
