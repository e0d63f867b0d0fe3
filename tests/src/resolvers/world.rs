//! A DNS world: the `resolv.conf` of a pod, and the answer of each server to each candidate.

use std::fmt;
use std::iter::once;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use fastrand::Rng;
use health::observation::Family;
use health::resolver::Resolver;
use health::resolvers::Answer;
use hickory_proto::op::ResponseCode;
use hickory_proto::rr::RecordType;
use lab_parts::dns::{Behaviour, KUBERNETES, KUBERNETES_IP, Response};

/// The name that is looked up.
pub(super) const NAME: &str = "kubernetes.default";
/// The full name of the cluster's API where the search list has no domain of Services.
const OUTSIDE: &str = "kubernetes.default.kube.example.";
/// The API's address of the other family.
const KUBERNETES_IP6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0x10, 0x96, 0, 0, 0, 0, 1);
/// Addresses that are somebody else's, though they might be a Service's.
const FOREIGN: (Ipv4Addr, Ipv6Addr) = (
    Ipv4Addr::new(203, 0, 113, 7),
    Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 7),
);
/// Another name of the API, to which its own may be an alias.
const TARGET: &str = "api.example.";

/// The time after which a resolver repeats a query.
pub(super) const TIMEOUT: Duration = Duration::from_secs(3);
/// The time that the probe has for a round. A quarter of it is long beside what a busy machine delays.
pub(super) const PROBE_TIMEOUT: Duration = Duration::from_secs(2);
/// A response after this comes before the probe goes on without it.
const SOON: Duration = Duration::from_millis(150);
/// One after this comes in time for the probe only to the first queries of a round, and one after that to none, but always
/// before a resolver gives it up.
const LATE: [Duration; 2] = [Duration::from_millis(1250), Duration::from_millis(2500)];

/// The features that some worlds have: all of them are to be seen.
pub(super) const TRAITS: [&str; 6] = [
    "AAAA",
    "A and AAAA",
    "alias",
    "no domain of Services",
    "--judge-as",
    "several servers",
];

/// A DNS world.
#[derive(Clone, Debug)]
pub struct World {
    /// The seed that it is drawn from.
    pub(super) seed: u64,
    pub(super) search: Vec<&'static str>,
    pub(super) options: Vec<&'static str>,
    /// The full name of the cluster's API.
    own: &'static str,
    /// The families in which it has an address.
    families: &'static [Family],
    /// The resolvers whose failure counts; none for any.
    pub(super) judges: Vec<Resolver>,
    pub(super) servers: Vec<Server>,
}

/// A DNS server. It knows the cluster's API and denies all other names, but for its faults.
#[derive(Clone, Debug)]
pub(super) struct Server {
    /// Nobody listens.
    pub(super) is_closed: bool,
    /// Later ones prevail.
    pub(super) faults: Vec<Fault>,
}

/// A response that differs from a healthy server's.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    /// The name; all if there is none.
    pub(super) name: Option<String>,
    /// The family; both if there is none.
    pub(super) family: Option<Family>,
    pub(super) kind: Kind,
}

/// The kind of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    ServFail,
    Refused,
    NotImp,
    FormErr,
    NxDomain,
    NoData,
    Lame,
    /// An alias of a name without an address.
    Dangling,
    /// An alias of the API's name, or that itself one of another.
    Alias,
    /// An address that no Service has.
    Stranger,
    /// An address that a Service might have.
    Foreign,
    Drop,
    Garbage,
    Truncated,
    /// Truncated, and TCP is silent.
    TruncatedSilent,
    /// Truncated, and connections are closed.
    TruncatedClosed,
    Soon,
    /// The place in [`LATE`].
    Late(usize),
}

impl World {
    /// Draws a world.
    pub fn draw(seed: u64) -> Self {
        let mut random = Rng::with_seed(seed);
        let random = &mut random;
        let (own, mut search) = if random.u8(..8) == 0 {
            (OUTSIDE, vec!["shop.kube.example", "kube.example"])
        } else {
            let search = [
                "shop.svc.cluster.local",
                "svc.cluster.local",
                "cluster.local",
            ];
            (KUBERNETES, search.to_vec())
        };
        for company in ["apps.example.net", "corp.example"] {
            match random.u8(..8) {
                0 | 1 => search.push(company),
                2 => search.insert(0, company),
                _ => {}
            }
        }
        let mut options = vec!["timeout:3"];
        options.extend(match random.u8(..8) {
            0 => Some("ndots:1"),
            1 => None,
            2 => Some("ndots:2"),
            _ => Some("ndots:5"),
        });
        options.extend((random.u8(..4) == 0).then_some("attempts:1"));
        for (option, of) in [
            ("rotate", 10),
            ("single-request", 12),
            ("use-vc", 16),
            ("no-aaaa", 16),
            ("edns0", 12),
        ] {
            if random.u8(..of) == 0 {
                options.push(option);
            }
        }
        let families: &[Family] = match random.u8(..8) {
            0 => &[Family::Aaaa],
            1 | 2 => &Family::ALL,
            _ => &[Family::A],
        };
        let [glibc, musl, go] = Resolver::ALL;
        let judges = match random.u8(..12) {
            0 => vec![glibc],
            1 => vec![musl],
            2 => vec![go],
            3 => vec![glibc, musl],
            _ => Vec::new(),
        };
        let count = one(random, &[1, 1, 1, 2, 2, 3]);
        let mut world = Self {
            seed,
            search,
            options,
            own,
            families,
            judges,
            servers: Vec::new(),
        };
        // Most faults are in all servers alike, as those of one cluster's DNS.
        let common = world.faults(random);
        world.servers = (0..count)
            .map(|_| {
                let mut faults = common.clone();
                if count > 1 && random.bool() {
                    faults.extend(world.faults(random));
                }
                let closed_of = if count > 1 { 8 } else { 24 };
                Server {
                    is_closed: random.u8(..closed_of) == 0,
                    faults,
                }
            })
            .collect();
        world
    }

    fn faults(&self, random: &mut Rng) -> Vec<Fault> {
        let names = self.candidates();
        let count = one(random, &[0, 1, 1, 1, 2, 2, 3]);
        let fault = |_| Fault {
            name: match random.u8(..8) {
                0 => None,
                // The right one, and those before it.
                1..=3 => Some(self.own.to_owned()),
                4 | 5 => names.first().cloned(),
                _ => random.choice(&names).cloned(),
            },
            family: match random.u8(..3) {
                0 => Some(Family::A),
                1 => Some(Family::Aaaa),
                _ => None,
            },
            kind: kind(random),
        };
        (0..count).map(fault).collect()
    }

    /// Returns `true` if `resolv.conf` has this option.
    pub(super) fn has(&self, option: &str) -> bool {
        self.options.contains(&option)
    }

    /// Returns `true` if the name itself is looked up first.
    pub(super) fn as_it_is_first(&self) -> bool {
        !["ndots:2", "ndots:5"]
            .into_iter()
            .any(|dots| self.has(dots))
    }

    /// Returns the full names that are looked up, in their order.
    pub(super) fn candidates(&self) -> Vec<String> {
        let searched = self.search.iter();
        let searched = searched.map(|suffix| format!("{NAME}.{suffix}."));
        let itself = format!("{NAME}.");
        if self.as_it_is_first() {
            once(itself).chain(searched).collect()
        } else {
            searched.chain(once(itself)).collect()
        }
    }

    /// Returns `true` if there is a fault of one of these kinds.
    pub(super) fn has_fault(&self, is_of: impl Fn(Kind) -> bool) -> bool {
        let mut faults = self.servers.iter().flat_map(|server| &server.faults);
        faults.any(|fault| is_of(fault.kind))
    }

    /// Returns `true` if the API has an address of either family.
    pub(super) fn has_both_families(&self) -> bool {
        self.families.len() > 1
    }

    /// Returns `true` if an address is the API's.
    pub(super) fn is_right(&self, address: IpAddr) -> bool {
        let own = self.families.iter().map(|family| own_address(*family));
        own.into_iter().any(|own| own == address)
    }

    /// Returns the address that pods are told of.
    pub(super) fn service_host(&self) -> IpAddr {
        let family = self.families.first().copied();
        own_address(family.unwrap_or(Family::A))
    }

    /// Returns which of [`TRAITS`] this world has.
    pub(super) fn traits(&self) -> impl Iterator<Item = &'static str> {
        let has = [
            self.families.contains(&Family::Aaaa),
            self.has_both_families(),
            self.has_fault(|kind| kind == Kind::Alias),
            self.own == OUTSIDE,
            !self.judges.is_empty(),
            self.servers.len() > 1,
        ];
        let traits = TRAITS.into_iter().zip(has);
        traits.filter_map(|(name, has)| has.then_some(name))
    }

    /// Returns `resolv.conf`.
    pub(super) fn resolv_conf(&self) -> String {
        let servers = (0..self.servers.len()).map(|place| format!("nameserver {}", address(place)));
        let first = format!("search {}", self.search.join(" "));
        let last = format!("options {}", self.options.join(" "));
        let lines: Vec<_> = once(first).chain(servers).chain(once(last)).collect();
        lines.join("\n") + "\n"
    }

    /// Returns the answer of a server.
    pub(super) fn behaviour(&self, server: &Server) -> Behaviour {
        let (world, server) = (self.clone(), server.clone());
        Behaviour::new(move |received| {
            let name = received.query.name().to_ascii().to_ascii_lowercase();
            let family = match received.query.query_type() {
                RecordType::AAAA => Family::Aaaa,
                _ => Family::A,
            };
            let healthy = world.healthy(&name, family);
            match server.fault(&name, family) {
                Some(fault) => fault.response(healthy, &world, &name, family),
                None => healthy,
            }
        })
    }

    fn healthy(&self, name: &str, family: Family) -> Response {
        if name != self.own {
            Response::Code(ResponseCode::NXDomain)
        } else if self.families.contains(&family) {
            address_response(own_address(family))
        } else {
            Response::NoData
        }
    }

    /// Returns a server's answer in the words of the rules, as it is to `view`.
    pub(super) fn answer(
        &self,
        name: &str,
        server: &Server,
        family: Family,
        view: &View,
    ) -> Answer {
        if server.is_closed {
            return Answer::Unreachable;
        }
        let has_address = self.families.contains(&family);
        let is_known = self.own == KUBERNETES;
        let own = |is_known: bool| {
            if is_known || view.knows_families || self.families.first() == Some(&family) {
                Answer::Right
            } else {
                Answer::Stranger
            }
        };
        let healthy = match (name == self.own, has_address) {
            (true, true) => own(is_known),
            (true, false) => Answer::NoData,
            (false, _) => Answer::NxDomain,
        };
        let Some(kind) = server.fault(name, family) else {
            return healthy;
        };
        match kind {
            Kind::ServFail => Answer::ServFail,
            Kind::Refused | Kind::NotImp => Answer::Refused,
            Kind::FormErr => Answer::Rejected,
            Kind::NxDomain => Answer::NxDomain,
            Kind::NoData => Answer::NoData,
            Kind::Lame => Answer::Lame,
            Kind::Alias if has_address => own(is_known && name != self.own),
            Kind::Alias | Kind::Dangling => Answer::Alias,
            Kind::Foreign if is_known && name == self.own && !view.knows_strangers => Answer::Right,
            Kind::Stranger | Kind::Foreign => Answer::Stranger,
            Kind::Drop => Answer::Silence,
            Kind::Garbage => Answer::Stray,
            Kind::Late(place) if place >= view.too_late => Answer::Silence,
            Kind::Truncated | Kind::TruncatedSilent | Kind::TruncatedClosed
                if view.ignores_truncation && !view.over_tcp =>
            {
                Answer::NoData
            }
            Kind::Soon | Kind::Late(_) | Kind::Truncated => healthy,
            Kind::TruncatedSilent if view.over_tcp => Answer::Silence,
            Kind::TruncatedClosed if view.over_tcp => Answer::Unreachable,
            Kind::TruncatedSilent => Answer::Truncated { silent: true },
            Kind::TruncatedClosed => Answer::Truncated { silent: false },
        }
    }
}

/// Who looks at answers.
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is something else that one knows and another does not"
)]
pub(super) struct View {
    /// Whether an address of a stranger for the cluster's own name is told apart.
    pub(super) knows_strangers: bool,
    /// Whether the API's address of the other family is known.
    pub(super) knows_families: bool,
    /// Whether truncated responses are taken as they are.
    pub(super) ignores_truncation: bool,
    /// Whether queries go over TCP alone.
    pub(super) over_tcp: bool,
    /// The first place in [`LATE`] that is too late.
    pub(super) too_late: usize,
}

/// The number of late responses, of which each later one is late for more.
pub(super) const LATENESSES: usize = LATE.len();

/// Returns the address of a server.
pub(super) fn address(place: usize) -> IpAddr {
    let last = u8::try_from(place).unwrap_or(u8::MAX).saturating_add(10);
    Ipv4Addr::new(10, 96, 0, last).into()
}

fn own_address(family: Family) -> IpAddr {
    match family {
        Family::A => KUBERNETES_IP.into(),
        Family::Aaaa => KUBERNETES_IP6.into(),
    }
}

fn address_response(address: IpAddr) -> Response {
    match address {
        IpAddr::V4(address) => Response::Ipv4(address),
        IpAddr::V6(address) => Response::Ipv6(address),
    }
}

fn one<T: Copy>(random: &mut Rng, all: &[T]) -> T {
    all[random.usize(..all.len())]
}

fn kind(random: &mut Rng) -> Kind {
    const ALL: [Kind; 17] = [
        Kind::ServFail,
        Kind::Refused,
        Kind::NotImp,
        Kind::FormErr,
        Kind::NxDomain,
        Kind::NoData,
        Kind::Lame,
        Kind::Dangling,
        Kind::Alias,
        Kind::Alias,
        Kind::Stranger,
        Kind::Foreign,
        Kind::Drop,
        Kind::Drop,
        Kind::Garbage,
        Kind::Truncated,
        Kind::Soon,
    ];
    match random.u8(..20) {
        0 => Kind::TruncatedSilent,
        1 => Kind::TruncatedClosed,
        2 => Kind::Late(random.usize(..LATE.len())),
        _ => one(random, &ALL),
    }
}

impl Server {
    fn fault(&self, name: &str, family: Family) -> Option<Kind> {
        let mut faults = self.faults.iter().rev();
        let fault = faults.find(|fault| {
            fault.name.as_ref().is_none_or(|own| own == name)
                && fault.family.is_none_or(|own| own == family)
        });
        fault.map(|fault| fault.kind)
    }
}

impl Kind {
    fn response(self, healthy: Response, world: &World, name: &str, family: Family) -> Response {
        match self {
            Self::ServFail => Response::Code(ResponseCode::ServFail),
            Self::Refused => Response::Code(ResponseCode::Refused),
            Self::NotImp => Response::Code(ResponseCode::NotImp),
            Self::FormErr => Response::Code(ResponseCode::FormErr),
            Self::NxDomain => Response::Code(ResponseCode::NXDomain),
            Self::NoData => Response::NoData,
            Self::Lame => Response::Lame,
            Self::Dangling => Response::Alias(TARGET, Box::new(Response::NoData)),
            Self::Alias => {
                let target = if name == world.own { TARGET } else { world.own };
                let of_target = world.healthy(world.own, family);
                Response::Alias(target, Box::new(of_target))
            }
            Self::Stranger => Response::Loopback,
            Self::Foreign => match family {
                Family::A => Response::Ipv4(FOREIGN.0),
                Family::Aaaa => Response::Ipv6(FOREIGN.1),
            },
            Self::Drop => Response::Drop,
            Self::Garbage => Response::Garbage,
            Self::Truncated => Response::Truncated(Box::new(healthy)),
            Self::TruncatedSilent => Response::Truncated(Box::new(Response::Drop)),
            Self::TruncatedClosed => Response::Truncated(Box::new(Response::Close)),
            Self::Soon => Response::Delayed(SOON, Box::new(healthy)),
            Self::Late(place) => Response::Delayed(LATE[place], Box::new(healthy)),
        }
    }
}

impl fmt::Display for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed {}\n{}", self.seed, self.resolv_conf())?;
        let families = self.families.iter().map(ToString::to_string);
        let families: Vec<_> = families.collect();
        writeln!(f, "{} {}", self.own, families.join(" and "))?;
        for judge in &self.judges {
            writeln!(f, "judged as {judge}")?;
        }
        for (place, server) in self.servers.iter().enumerate() {
            write!(f, "{}:", address(place))?;
            if server.is_closed {
                f.write_str(" closed")?;
            }
            for Fault { name, family, kind } in &server.faults {
                let name = name.as_deref().unwrap_or("every name");
                let family = family.map_or("A and AAAA".to_owned(), |family| family.to_string());
                write!(f, " {name} {family} {kind:?};")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}
